"""The arrows of the design, read from the source: who may import whom, and what no module may do."""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# These packages work on the others through the seams of the engine, and nothing outside of them may import them.
OUTSIDE = ("minigrad.kernels", "minigrad.precision", "minigrad.inspect")
# The public names of a package, which may be those of OUTSIDE: loaded when somebody asks for them.
DOORS = ("minigrad", "minigrad.optim")

ENGINE = {"numpy", "scipy", "safetensors"}  # what minigrad may import from outside
COMMANDS = ENGINE | {"tqdm", "threadpoolctl", "click"}  # what transformer may
# What these packages may import inside of functions besides.
EXTRAS = {
    ("transformer",): {"babel", "sacrebleu", "tokenizers", "matplotlib", "matplotlib_fontja"},
    ("transformer.distributed",): {"mpi4py"},
    ("minigrad.inspect.graph",): {"pygraphviz"},
    ("minigrad.device", "minigrad.kernels"): {"cupy", "cupyx"},
}


def dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


# Dotted name -> syntax, for every module of the two packages and the examples.
TREES = {dotted(path): ast.parse(path.read_text(encoding="utf-8"))
         for top in ("minigrad", "transformer", "examples") for path in sorted((ROOT / top).rglob("*.py"))}
PRODUCT = [name for name in TREES if not name.startswith("examples")]
MINIGRAD = [name for name in PRODUCT if name.startswith("minigrad")]


def imports(node, *, at_once=False):
    """Modules imported below `node`; `at_once` leaves out what functions import, or type checkers alone."""
    found = set()
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


def within(module, packages):
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def tops(names):
    return {name.partition(".")[0] for name in names}


def test_nothing_imports_what_works_on_it_from_outside():
    assert [(module, name) for module in MINIGRAD if module not in DOORS and not within(module, OUTSIDE)
            for name in imported(module) if within(name, OUTSIDE)] == []


# The folders of transformer/ from the bottom up: what each may import besides itself. The picture that a training run
# draws is the one thing that it takes from `explore`; `cli` stands on all.
FOLDERS = {
    "model": (), "data": (), "decode": ("model", "data", "finite"), "interop": ("model",),
    "distributed": (),
    "training": ("model", "data", "decode", "distributed", "finite", "translator", "explore.plots"),
    "explore": ("model", "data", "finite", "training", "translator"),
}
# A package; the beginnings of names of which its modules may import no others than those in the packages after them.
RULES = [
    ("minigrad", ("transformer", "examples", "tests"), ()),
    ("transformer", ("examples", "tests"), ()),
    ("minigrad.engine", ("",), ("minigrad.engine", "minigrad.device", "numpy", *sys.stdlib_module_names)),
    # The model stands on what a student reads of minigrad: not on the rarer operations, and on nothing from outside.
    ("transformer.model", ("minigrad.",), ("minigrad.nn", "minigrad.functional", "minigrad.device", "minigrad.engine")),
    *((f"transformer.{folder}", ("transformer",), tuple(f"transformer.{other}" for other in (folder, *others)))
      for folder, others in FOLDERS.items()),
]


@pytest.mark.parametrize(("package", "names", "allowed"), RULES)
def test_a_package_imports_what_it_stands_on(package, names, allowed):
    assert [(module, name) for module in PRODUCT if within(module, (package,)) for name in imported(module)
            if name.startswith(names) and not within(name, allowed)] == []


def test_no_files_import_each_other():
    """Not even for annotations or inside of functions: a file can be read before those that import it."""
    graph = {module: imported(module) & TREES.keys() - {module} for module in TREES}
    graphlib.TopologicalSorter(graph).prepare()  # CycleError shows the circle


def test_only_declared_packages_are_imported():
    """And an extra is imported by the function that needs it, never along with the module."""
    undeclared = []
    for module in PRODUCT:
        allowed = {"minigrad", "transformer", *sys.stdlib_module_names} | (ENGINE if module in MINIGRAD else COMMANDS)
        optional = {name for packages, names in EXTRAS.items() if within(module, packages) for name in names}
        undeclared += [(module, name) for name in tops(imports(TREES[module], at_once=True)) - allowed]
        undeclared += [(module, name) for name in tops(imported(module)) - allowed - optional]
    assert undeclared == []


def test_nothing_loads_code_from_data():
    pickles = {"pickle", "shelve", "marshal", "dill", "joblib", "cloudpickle"}
    assert [module for module in PRODUCT if tops(imported(module)) & pickles] == []
    calls = [(module, node) for module in PRODUCT for node in ast.walk(TREES[module]) if isinstance(node, ast.Call)]
    assert [f"{module}:{call.lineno}" for module, call in calls if ast.unparse(call.func) in ("eval", "exec")
            or any(keyword.arg == "allow_pickle" for keyword in call.keywords)] == []  # it is off by default
