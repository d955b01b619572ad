"""A and dS of the same sentence at each checkpoint of a training run."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from minigrad import Tensor
from minigrad.device import to_numpy

from transformer.explore.data import Snapshot
from transformer.explore.trace import Trace, trace
from transformer.finite import overflow
from transformer.model import Transformer
from transformer.training.checkpoints import build, load_checkpoint
from transformer.training.messages import note
from transformer.training.run_folder import RunError, numbered


def double(model: Transformer) -> Transformer:
    """A copy in float64, in evaluation mode and without gradients, on the same device; weights keep their values."""
    copied = deepcopy(model).eval()
    copied.zero_grad()  # what training left there would be added to the gradient of the sentence
    return copied.to(dtype=np.float64)


def backward_pass(model: Transformer, source: Any, labels: Any) -> tuple[Trace, float]:
    """One forward and backward through the cross-entropy per token, and its value; NotFinite if that is not finite."""
    with trace(model) as traced:
        loss = model.loss(source, labels)
        loss.backward()
    if not math.isfinite(loss.item()):
        raise overflow(model, "loss")
    return traced, loss.item()


def snapshots(folder: Path, source: Any, labels: Any, device: str) -> list[Snapshot]:
    """The attentions of each numbered checkpoint of the run in `folder` on a sentence, oldest first.

    A damaged checkpoint is left out, with a note on standard error.
    """
    found = []
    for name in numbered(folder):
        try:
            run, arrays, _ = load_checkpoint(folder, name)
            model = build(folder / "checkpoints" / name, run, arrays).to(device)
        except RunError as error:
            if (folder / "checkpoints" / name).exists():  # else a training that still runs deleted it meanwhile
                note(f"{error}; it is left out of the history")
            continue
        traced, _ = backward_pass(double(model), source, labels)
        found.append(Snapshot(int(name), {attention: _short(traced[attention].weights) for attention in traced},
                              {attention: _short(traced[attention].gradient("scaled")) for attention in traced}))
    return found


def _short(tensor: Tensor) -> np.ndarray[Any, Any]:
    return to_numpy(tensor._data).astype(np.float32)
