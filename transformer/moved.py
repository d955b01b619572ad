"""Old places of modules: importing a module from there works for one release, with a DeprecationWarning."""

from __future__ import annotations

from minigrad.compat import moved

# Old module -> the modules that define its names now; a name comes from the first module that has it.
MOVED: dict[str, tuple[str, ...]] = {
    "transformer.attention": ("transformer.model.attention",),
    "transformer.cache": ("transformer.decode.kv_cache",),
    "transformer.checkpoints": ("transformer.training.checkpoints", "transformer.training.run_folder"),
    "transformer.config": ("transformer.model.config",),
    "transformer.data.parallel": ("transformer.data.parallel_text",),
    "transformer.decode.cached_decoder": ("transformer.decode.next_token",),
    "transformer.explain": ("transformer.explore",),
    "transformer.explain.checks": ("transformer.explore.checks",),
    "transformer.explain.data": ("transformer.explore.data",),
    "transformer.explain.explanation": ("transformer.explore.explanation",),
    "transformer.explain.history": ("transformer.explore.history",),
    "transformer.explain.identities": ("transformer.explore.identities",),
    "transformer.explain.notebook": ("transformer.explore.notebook",),
    "transformer.explain.page": ("transformer.explore.page",),
    "transformer.explain.steps": ("transformer.explore.steps",),
    "transformer.explain.text": ("transformer.explore.text",),
    "transformer.explain.translation": ("transformer.explore.translation",),
    "transformer.explain.worked": ("transformer.explore.worked",),
    "transformer.layers": ("transformer.model.layers",),
    "transformer.log": ("transformer.training.log",),
    "transformer.losses": ("transformer.training.loss_meter",),
    "transformer.masks": ("transformer.model.masks",),
    "transformer.memory": ("transformer.training.memory",),
    "transformer.metrics": ("transformer.training.metrics",),
    "transformer.options": ("transformer.training.options",),
    "transformer.out_of_memory": ("transformer.training.out_of_memory",),
    "transformer.pairs": ("transformer.training.pairs",),
    "transformer.parallel": ("transformer.training.parallel_gradients",),
    "transformer.plots": ("transformer.explore.plots",),
    "transformer.plots.attention": ("transformer.explore.plots.attention",),
    "transformer.plots.figure": ("transformer.explore.plots.figure",),
    "transformer.plots.gradient_flow": ("transformer.explore.plots.gradient_flow",),
    "transformer.plots.history": ("transformer.explore.plots.history",),
    "transformer.positions": ("transformer.model.positions",),
    "transformer.prepared": ("transformer.training.prefetch",),
    "transformer.profiling": ("transformer.training.profiling",),
    "transformer.progress": ("transformer.training.progress",),
    "transformer.pytorch": ("transformer.interop",),
    "transformer.pytorch.names": ("transformer.interop.names",),
    "transformer.pytorch.weights": ("transformer.interop.weights",),
    "transformer.real_tokens": ("transformer.training.packed",),
    "transformer.recipes": ("transformer.training.recipes",),
    "transformer.recorder": ("transformer.explore.recorder",),
    "transformer.threads": ("transformer.training.threads",),
    "transformer.trace": ("transformer.explore.trace", "transformer.explore.calls"),
    "transformer.traced": ("transformer.explore.traced",),
    "transformer.train": ("transformer.training.loop",),
    "transformer.trainer": ("transformer.training.trainer",),
    "transformer.validation": ("transformer.training.validation",),
}
LEFT: dict[str, tuple[str, ...]] = {
    "transformer.model": ("transformer.model.transformer",),
    "transformer.training.checkpoints": ("transformer.training.run_folder",),
}


def install() -> None:
    """Make imports from the old places work."""
    moved.install(MOVED, LEFT)
