"""The arrows of the design, read from the source: who may import whom, and what no module may do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("minigrad", "transformer", "examples")

# These packages work on the others through the seams of the engine, and nothing outside of them may import them.
OUTSIDE = ("minigrad.kernels", "minigrad.precision", "minigrad.inspect", "minigrad.compat")
# The public names of a package, which may be those of OUTSIDE: loaded when somebody asks for them.
DOORS = ("minigrad", "minigrad.optim")

ENGINE = {"numpy", "scipy", "safetensors"}  # what minigrad may import from outside
COMMANDS = ENGINE | {"tqdm", "threadpoolctl", "click"}  # what transformer may
EXTRAS = {"babel", "sacrebleu", "tokenizers", "matplotlib", "matplotlib_fontja"}  # and inside its functions
GRAPHVIZ = "minigrad.inspect.graph"  # the only module that may import pygraphviz, inside a function
COMPILER = ("minigrad.kernels.compiled.", "minigrad.kernels.jit")  # the modules that import Numba, loaded on demand
CUPY = ("minigrad.device", "minigrad.kernels")  # the only modules that may name CuPy


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
MINIGRAD = [name for name in PRODUCT if name.startswith("minigrad")]


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module].read_text(encoding="utf-8"), filename=module)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports(node: ast.AST, *, functions: bool = True, types: bool = True) -> set[str]:
    """Modules imported below ``node``: with ``functions`` inside of them too, with ``types`` for type checkers too."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            found |= {alias.name for alias in child.names}
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute here"
            names = {f"{child.module}.{alias.name}" for alias in child.names}
            found |= {name if name in sources() else str(child.module) for name in names}
        elif isinstance(child, ast.Call) and ast.unparse(child.func).endswith("import_module"):
            found |= {part.value for part in child.args if isinstance(part, ast.Constant)}
            found |= imports(child, functions=functions, types=types)
        elif is_type_checking(child):
            alternative = ast.Module(getattr(child, "orelse", []), [])
            found |= imports(child if types else alternative, functions=functions, types=types)
        elif functions or not is_function(child):
            found |= imports(child, functions=functions, types=types)
    return found


@cache
def imported(module: str) -> set[str]:
    """Everything that a module imports, in whatever way and for whatever reason."""
    return imports(tree(module))


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_nothing_imports_what_works_on_it_from_outside():
    inside = [module for module in MINIGRAD if module not in DOORS and not within(module, OUTSIDE)]
    found = {(module, name) for module in inside for name in imported(module) if within(name, OUTSIDE)}
    assert found == set()


def test_the_engine_imports_numpy_and_devices_alone():
    allowed = {"numpy", *sys.stdlib_module_names}
    found = {(module, name) for module in MINIGRAD if within(module, ("minigrad.engine",)) for name in imported(module)
             if not within(name, ("minigrad.engine", "minigrad.device")) and name.partition(".")[0] not in allowed}
    assert found == set()


def test_minigrad_knows_no_model_and_the_product_no_example():
    found = {(module, name) for module in PRODUCT for name in imported(module)
             if within(name, ("examples", "tests")) or (module in MINIGRAD and within(name, ("transformer",)))}
    assert found == set()


def test_no_files_import_each_other():
    """Not even for annotations or inside of functions: a file can be read before those that import it."""
    graph = {module: imported(module) & sources().keys() - {module} for module in sources()}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError shows the circle


# The folders of transformer/ from the bottom up: what each may import besides itself.
FOLDERS = {
    "model": (), "data": (), "decode": ("model", "data", "known"), "interop": ("model",),
    "training": ("model", "data", "decode", "known", "translator", "explore.plots"),
    "explore": ("model", "data", "training", "translator"),
}


def test_the_folders_of_the_transformer_stand_on_each_other():
    """`cli` stands on all; the picture that a training run draws is the one thing that it takes from `explore`."""
    found = set()
    for folder, others in FOLDERS.items():
        allowed = tuple(f"transformer.{other}" for other in (folder, *others))
        found |= {(module, name) for module in PRODUCT if within(module, (f"transformer.{folder}",))
                  for name in imported(module) if within(name, ("transformer",)) and not within(name, allowed)}
    assert found == set()


def test_the_model_stands_on_the_page():
    """On what a student reads of minigrad: not on the rarer operations, and on nothing from outside."""
    allowed = ("minigrad.Tensor", "minigrad.tap", "minigrad.nn", "minigrad.functional", "minigrad.device",
               "minigrad.engine", "transformer.model")
    found = {(module, name) for module in PRODUCT if within(module, ("transformer.model",)) for name in imported(module)
             if name.startswith(("minigrad.", "transformer")) and (not within(name, allowed) or ".more." in name)}
    assert found == set()


def test_only_declared_packages_are_imported():
    """And an extra is imported by the function that needs it, never along with the module."""
    undeclared = []
    for module in PRODUCT:
        engine = module in MINIGRAD
        allowed = {"minigrad", "transformer", *sys.stdlib_module_names} | (ENGINE if engine else COMMANDS)
        allowed |= {"numba"} if module.startswith(COMPILER) else set()
        optional = {"cupy", "cupyx"} if engine else EXTRAS
        optional = optional | {"pygraphviz"} if module == GRAPHVIZ else optional
        at_once = tops(imports(tree(module), functions=False, types=False))
        undeclared += [f"{module} imports {name}" for name in at_once - allowed]
        undeclared += [f"{module} imports {name} in a function" for name in tops(imported(module)) - allowed - optional]
    assert undeclared == []


def test_cupy_is_named_in_its_files_only():
    elsewhere = [module for module in PRODUCT if not within(module, CUPY)]
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
