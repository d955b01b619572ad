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
    ["minigrad.device"],
    ["minigrad.random"],
    ["minigrad.autograd"],
    ["minigrad.primitive"],
    ["minigrad.tap"],
    ["minigrad.ops"],
    ["minigrad.tensor"],
    ["minigrad.transforms"],
    ["minigrad.functional"],
    ["minigrad.nn", "minigrad.optim", "minigrad.gradcheck", "minigrad.checkpoint"],
    ["minigrad"],
    ["transformer.config", "transformer.masks", "transformer.positions", "transformer.cache"],
    ["transformer.data", "transformer.options", "transformer.plots", "transformer.memory"],
    ["transformer.attention", "transformer.metrics", "transformer.recipes", "transformer.log"],
    ["transformer.layers"],
    ["transformer.model"],
    ["transformer.decode", "transformer.checkpoints"],
    ["transformer.translator"],
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


@pytest.mark.parametrize("module", sources())
def test_arrows_point_down(module):
    own = entry(module)
    ours = {name for name in imports(tree(module)) if name.partition(".")[0] in OURS}
    upward = {name for name in ours if entry(name) != own and LINE[entry(name)] >= LINE[own]}
    assert not upward, f"{own} comes before {sorted(upward)} in LAYERS"


def test_no_import_cycles():
    graph = {name: imports(tree(name)) & set(sources()) - {name} for name in sources()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError shows the cycle


@pytest.mark.parametrize("module", PRODUCT)
def test_only_declared_packages_are_imported(module):
    engine = module.startswith("minigrad")
    allowed = {"minigrad", "transformer", *sys.stdlib_module_names} | (ENGINE if engine else COMMANDS)
    optional = {"cupy", "cupyx"} if engine else EXTRAS
    at_once = {name.partition(".")[0] for name in imports(tree(module), functions=False)}
    in_all = {name.partition(".")[0] for name in imports(tree(module))}
    assert at_once - allowed == set(), "an extra is imported by the function that needs it"
    assert in_all - allowed - optional == set()


@pytest.mark.parametrize("module", PRODUCT)
def test_cupy_is_named_in_its_files_only(module):
    named = {name for name in imports(tree(module)) if name.startswith("cupy")}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named |= {ast.unparse(argument) for argument in node.args if "cupy" in ast.unparse(argument)}
    assert not named or module.startswith(CUPY), f"{module} imports {named}"


@pytest.mark.parametrize("module", PRODUCT)
def test_nothing_loads_code_from_data(module):
    forbidden = {"pickle", "shelve", "marshal", "dill", "joblib", "cloudpickle"}
    assert {name.partition(".")[0] for name in imports(tree(module))} & forbidden == set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("eval", "exec"), f"{module}:{node.lineno}"
            for keyword in node.keywords:
                assert keyword.arg != "allow_pickle", f"{module}:{node.lineno} (False is the default)"


@pytest.mark.parametrize("module", PRODUCT)
def test_users_mistakes_meet_exceptions(module):
    """No assert (python -O removes it) and no handler that hides every error."""
    for node in ast.walk(tree(module)):
        assert not isinstance(node, ast.Assert), f"{module}:{node.lineno} raise an exception instead"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{module}:{node.lineno} name the exception"
