"""The arrows of the design, read from the source: who may import whom, and what no module may do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# From the ground up: a module may import what is listed before its line, and the modules of its own entry.
# Entries on one line know nothing of each other. "minigrad" and "transformer" are the __init__ files alone.
LAYERS = [
    ["minigrad.arguments", "minigrad.device", "minigrad.compat.names"],
    ["minigrad.precision.gpu", "minigrad.namespace", "minigrad.device.writing"],
    ["minigrad.precision.half", "minigrad.random", "minigrad.engine.signatures", "minigrad.func.trees"],
    ["minigrad.engine.switches", "minigrad.engine.node"],
    ["minigrad.engine.accumulate", "minigrad.engine.plan", "minigrad.engine.calls", "minigrad.engine.observe"],
    ["minigrad.precision.autocast"],
    ["minigrad.engine.operands"],
    ["minigrad.engine.hooks"],
    ["minigrad.engine.backward"],
    ["minigrad.engine.grad", "minigrad.engine.rules", "minigrad.parallel"],
    ["minigrad.engine.primitive"],
    ["minigrad.functional.compositions", "minigrad.tensor.notebook"],
    ["minigrad.ops"],
    ["minigrad.tensor.elementwise_methods"],
    ["minigrad.tensor.array_like", "minigrad.tensor.operators", "minigrad.tensor.methods"],
    ["minigrad.tensor"],
    ["minigrad.tensor.creation", "minigrad.functional.bundle"],
    ["minigrad.func.checkpointing", "minigrad.func.inner_call"],
    ["minigrad.functional"],
    ["minigrad.nn", "minigrad.optim", "minigrad.gradcheck", "minigrad.checkpoint"],
    ["minigrad.func", "minigrad.inspect", "minigrad.kernels"],
    ["minigrad"],
    ["transformer.config", "transformer.masks", "transformer.positions", "transformer.cache"],
    ["transformer.real_tokens"],
    ["transformer.data", "transformer.options", "transformer.progress", "transformer.plots", "transformer.memory"],
    ["transformer.threads", "transformer.attention", "transformer.metrics", "transformer.recipes", "transformer.log",
     "transformer.losses"],
    ["transformer.layers", "transformer.profiling"],
    ["transformer.model", "transformer.traced"],
    ["transformer.explain", "transformer.recorder", "transformer.parallel"],
    ["transformer.trace", "transformer.prepared", "transformer.out_of_memory"],
    ["transformer.decode", "transformer.checkpoints", "transformer.pytorch"],
    ["transformer.translator", "transformer.explain.history", "transformer.pairs"],
    ["transformer.explain.translation"],
    ["transformer.validation"],
    ["transformer.trainer"],
    ["transformer.train"],
    ["transformer"],
    ["transformer.cli"],
    ["transformer.__main__"],
    ["examples"],
]
OURS = ("minigrad", "transformer", "examples")
LINE = {entry: line for line, entries in enumerate(LAYERS) for entry in entries}

ENGINE = {"numpy", "scipy", "safetensors"}  # what minigrad may import from outside
COMMANDS = ENGINE | {"tqdm", "threadpoolctl", "click"}  # what transformer may
EXTRAS = {"babel", "sacrebleu", "tokenizers", "matplotlib", "matplotlib_fontja"}  # and inside its functions
GRAPHVIZ = "minigrad.inspect.graph"  # the only module that may import pygraphviz, inside a function
COMPILER = "minigrad.kernels.jit"  # how the names of the modules begin that import Numba, and are loaded on demand
CUPY = ("minigrad.device", "minigrad.random", "minigrad.kernels")  # the only modules that may name CuPy


@cache
def sources() -> dict[str, Path]:
    """Dotted name -> file, for every module of the two packages and the examples."""
    found = {}
    for top in OURS:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


PRODUCT = [name for name in sources() if not name.startswith("examples")]


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module].read_text(encoding="utf-8"), filename=module)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports(node: ast.AST, *, functions: bool = True) -> set[str]:
    """Modules imported at run time below ``node``; without ``functions``, those imported along with it."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found |= {alias.name for alias in child.names}
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute here"
            names = {f"{child.module}.{alias.name}" for alias in child.names}
            found |= {name if name in sources() else str(child.module) for name in names}
        elif not is_type_checking(child) and (functions or not is_function(child)):
            found |= imports(child, functions=functions)
    return found


def entry(module: str) -> str:
    """The entry of LAYERS to which a module belongs: its own name, or the folder or file it is in."""
    folders = [name for name in LINE if name not in ("minigrad", "transformer")]
    own = [name for name in folders if f"{module}.".startswith(f"{name}.")]
    if module in LINE:
        return module
    if not own:
        pytest.fail(f"{module} has no place yet: add it to LAYERS in tests/test_architecture.py")
    return max(own, key=len)


@cache
def imported(module: str) -> set[str]:
    return imports(tree(module))


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_arrows_point_down():
    upward = [
        f"{module} imports {name}"
        for module in sources()
        for name in imported(module)
        if name.partition(".")[0] in OURS
        and entry(name) != entry(module)
        and LINE[entry(name)] >= LINE[entry(module)]
    ]
    assert upward == []


def test_no_import_cycles():
    graph = {module: imported(module) & set(sources()) - {module} for module in sources()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError shows the cycle


def test_only_declared_packages_are_imported():
    """And an extra is imported by the function that needs it, never along with the module."""
    undeclared = []
    for module in PRODUCT:
        engine = module.startswith("minigrad")
        allowed = {"minigrad", "transformer", *sys.stdlib_module_names} | (ENGINE if engine else COMMANDS)
        allowed |= {"numba"} if module.startswith(COMPILER) else set()
        optional = {"cupy", "cupyx"} if engine else EXTRAS
        optional = optional | {"pygraphviz"} if module == GRAPHVIZ else optional
        at_once = tops(imports(tree(module), functions=False))
        undeclared += [f"{module} imports {name}" for name in at_once - allowed]
        undeclared += [f"{module} imports {name} in a function" for name in tops(imported(module)) - allowed - optional]
    assert undeclared == []


def test_cupy_is_named_in_its_files_only():
    elsewhere = [module for module in PRODUCT if not module.startswith(CUPY)]
    found = [module for module in elsewhere if tops(imported(module)) & {"cupy", "cupyx"}]
    found += [
        f"{module}:{node.lineno}"
        for module in elsewhere
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func) and "cupy" in ast.unparse(node)
    ]
    assert found == []


def test_nothing_loads_code_from_data():
    pickles = {"pickle", "shelve", "marshal", "dill", "joblib", "cloudpickle"}
    found = [module for module in PRODUCT if tops(imported(module)) & pickles]
    for module in PRODUCT:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Call):
                evaluates = isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec")
                unpickles = any(keyword.arg == "allow_pickle" for keyword in node.keywords)  # off by default
                found += [f"{module}:{node.lineno}"] if evaluates or unpickles else []
    assert found == []


def test_users_mistakes_meet_exceptions():
    """No assert (python -O removes it), and no handler that catches without saying what."""
    found = [
        f"{module}:{node.lineno}"
        for module in PRODUCT
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Assert) or (isinstance(node, ast.ExceptHandler) and node.type is None)
    ]
    assert found == []
