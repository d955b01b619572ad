"""The arrows of the design, read from the source: who may import whom, and what no module may do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

# These packages work on the others through the seams of the engine, and nothing outside of them may import them.
OUTSIDE = ("minigrad.kernels", "minigrad.precision", "minigrad.inspect")
# The public names of a package, which may be those of OUTSIDE: loaded when somebody asks for them.
DOORS = ("minigrad", "minigrad.optim")

ENGINE = {"numpy", "scipy", "safetensors"}  # what minigrad may import from outside
COMMANDS = ENGINE | {"tqdm", "threadpoolctl", "click"}  # what transformer may
EXTRAS = {"babel", "sacrebleu", "tokenizers", "matplotlib", "matplotlib_fontja"}  # and inside its functions
MPI = "transformer.distributed"  # the only package that may import mpi4py, inside functions
GRAPHVIZ = "minigrad.inspect.graph"  # the only module that may import pygraphviz, inside a function
CUPY = ("minigrad.device", "minigrad.kernels")  # the only modules that may name CuPy


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


# Dotted name -> syntax, for every module of the two packages and the examples.
TREES = {dotted(path): ast.parse(path.read_text(encoding="utf-8"))
         for top in ("minigrad", "transformer", "examples") for path in sorted((ROOT / top).rglob("*.py"))}
PRODUCT = [name for name in TREES if not name.startswith("examples")]
MINIGRAD = [name for name in PRODUCT if name.startswith("minigrad")]


def imports(node: ast.AST, *, at_once: bool = False) -> set[str]:
    """Modules imported below `node`; `at_once` leaves out what functions import, or type checkers alone."""
    found: set[str] = set()
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=aliases):
                found |= {alias.name for alias in aliases}
                continue
            case ast.ImportFrom(module=module, names=aliases, level=level):
                assert level == 0, "imports are absolute here"
                names = {f"{module}.{alias.name}" for alias in aliases}
                found |= {name if name in TREES else str(module) for name in names}
                continue
            case ast.Call(func=func, args=args) if ast.unparse(func).endswith("import_module"):
                found |= {part.value for part in args if isinstance(part, ast.Constant)}
            case ast.If(test=test, orelse=orelse) if at_once and ast.unparse(test).endswith("TYPE_CHECKING"):
                child = ast.Module(orelse, [])
            case ast.FunctionDef() | ast.AsyncFunctionDef() if at_once:
                continue
        found |= imports(child, at_once=at_once)
    return found


# Everything that a module imports, in whatever way and for whatever reason.
imported = cache(lambda module: imports(TREES[module]))


def within(module: str, packages: tuple[str, ...]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def arrows(modules: list[str], package: str) -> list[tuple[str, str]]:
    """(module, what it imports) of the modules in a package."""
    return [(module, name) for module in modules if within(module, (package,)) for name in imported(module)]


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_nothing_imports_what_works_on_it_from_outside():
    assert [(module, name) for module, name in arrows(MINIGRAD, "minigrad")
            if module not in DOORS and not within(module, OUTSIDE) and within(name, OUTSIDE)] == []


def test_the_engine_imports_numpy_and_devices_alone():
    allowed = ("minigrad.engine", "minigrad.device", "numpy", *sys.stdlib_module_names)
    assert [arrow for arrow in arrows(MINIGRAD, "minigrad.engine") if not within(arrow[1], allowed)] == []


def test_minigrad_knows_no_model_and_the_product_no_example():
    assert [(module, name) for module in PRODUCT for name in imported(module)
            if within(name, ("examples", "tests")) or (module in MINIGRAD and within(name, ("transformer",)))] == []


def test_no_files_import_each_other():
    """Not even for annotations or inside of functions: a file can be read before those that import it."""
    graph = {module: imported(module) & TREES.keys() - {module} for module in TREES}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError shows the circle


# The folders of transformer/ from the bottom up: what each may import besides itself.
FOLDERS = {
    "model": (), "data": (), "decode": ("model", "data", "finite"), "interop": ("model",),
    "distributed": (),
    "training": ("model", "data", "decode", "distributed", "finite", "translator", "explore.plots"),
    "explore": ("model", "data", "finite", "training", "translator"),
}


def test_the_folders_of_the_transformer_stand_on_each_other():
    """`cli` stands on all; the picture that a training run draws is the one thing that it takes from `explore`."""
    for folder, others in FOLDERS.items():
        allowed = tuple(f"transformer.{other}" for other in (folder, *others))
        assert [(module, name) for module, name in arrows(PRODUCT, f"transformer.{folder}")
                if within(name, ("transformer",)) and not within(name, allowed)] == []


def test_the_model_stands_on_the_page():
    """On what a student reads of minigrad: not on the rarer operations, and on nothing from outside."""
    allowed = ("minigrad.Tensor", "minigrad.tap", "minigrad.nn", "minigrad.functional", "minigrad.device",
               "minigrad.engine", "transformer.model")
    assert [(module, name) for module, name in arrows(PRODUCT, "transformer.model")
            if name.startswith(("minigrad.", "transformer"))
            and not within(name, allowed)] == []


def test_only_declared_packages_are_imported():
    """And an extra is imported by the function that needs it, never along with the module."""
    undeclared = []
    for module in PRODUCT:
        engine = module in MINIGRAD
        allowed = {"minigrad", "transformer", *sys.stdlib_module_names} | (ENGINE if engine else COMMANDS)
        optional = set() if engine else EXTRAS
        optional = optional | ({"cupy", "cupyx"} if within(module, CUPY) else set())
        optional = optional | ({"mpi4py"} if within(module, (MPI,)) else set())
        optional = optional | ({"pygraphviz"} if module == GRAPHVIZ else set())
        undeclared += [(module, name) for name in tops(imports(TREES[module], at_once=True)) - allowed]
        undeclared += [(module, name) for name in tops(imported(module)) - allowed - optional]
    assert undeclared == []


def found_in(fault) -> list[str]:
    """The places in the product where a node of the syntax is a fault."""
    return [f"{module}:{node.lineno}" for module in PRODUCT for node in ast.walk(TREES[module]) if fault(node)]


def test_nothing_loads_code_from_data():
    pickles = {"pickle", "shelve", "marshal", "dill", "joblib", "cloudpickle"}
    assert [module for module in PRODUCT if tops(imported(module)) & pickles] == []
    assert found_in(lambda node: isinstance(node, ast.Call) and (
        (isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"))
        or any(keyword.arg == "allow_pickle" for keyword in node.keywords))) == []  # it is off by default


def test_users_mistakes_meet_exceptions():
    """No assert (python -O removes it), and no handler that catches without saying what."""
    assert found_in(lambda node: isinstance(node, ast.Assert)
                    or (isinstance(node, ast.ExceptHandler) and node.type is None)) == []
