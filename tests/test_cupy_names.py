"""Each name and keyword that the sources take from an array module is one of CuPy's, by names.json.

The sources are read, not run, so lines that no test on the stand-in reaches are checked too. What is seen is written
plainly: ``xp(x).name``, ``namespace.name`` after ``namespace = xp(x)``, and a keyword in the call itself.
"""

import ast
import importlib
from pathlib import Path

import pytest

from tests.strict_cupy.ndarray import NAMES, bind

ROOT = Path(__file__).parents[1]
# What a call of these functions is, by its path below the module cupy, and what a parameter of these names is.
CALLS = {"xp": "", "module_for": "", "_find_cuda": "", "on_device": "cuda.Device",
         "get_default_memory_pool": "cuda.MemoryPool"}
PARAMETERS = {"namespace": "", "cupy": ""}

# Every name by its path: the parameters of what is called, None for anything else.
UFUNC = "x1, x2, out=, *, dtype=, casting="
KNOWN = NAMES["functions"] | dict.fromkeys(NAMES["ufuncs"], UFUNC) | dict.fromkeys(NAMES["constants"])
for part in ("cuda", "linalg", "random"):
    KNOWN |= {part: None} | {f"{part}.{name}": value for name, value in NAMES[part].items()}
KNOWN |= {f"{ufunc}.{name}": value for ufunc in NAMES["ufuncs"] for name, value in NAMES["ufunc"].items()}


def path_of(node, variables):
    """The path of what an expression takes from CuPy, "" for the module itself, None for anything else."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
            return CALLS[name]
        case ast.Call(func=ast.Attribute(attr=name)) if name[0].isupper():  # an instance of a class
            return path_of(node.func, variables)
        case ast.IfExp(orelse=value):
            return path_of(value, variables)
        case ast.Name(id=name):
            return variables.get(name)
        case ast.Attribute(value=value, attr=name):
            base = path_of(value, variables)
            return None if base is None else f"{base}.{name}".removeprefix(".")
    return None


def assigned_in(nodes):
    """(variable, value) of each assignment, those of tuples one by one."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                yield from ((ast.unparse(name), value) for name, value in zip(names, values, strict=False))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def uses_in(text):
    """(line, path, keywords if it is called) of all that a module takes from CuPy, function by function."""
    uses = set()
    for scope in ast.walk(ast.parse(text)):
        nodes = list(ast.walk(scope)) if isinstance(scope, (ast.Module, ast.FunctionDef, ast.Lambda)) else []
        variables = {}
        if not isinstance(scope, ast.Module):
            variables = {node.arg: PARAMETERS.get(node.arg) for node in nodes if isinstance(node, ast.arg)}
            for name, value in assigned_in(nodes):
                variables[name] = path_of(value, variables)
        keywords = {node.func: tuple(keyword.arg for keyword in node.keywords if keyword.arg) for node in nodes
                    if isinstance(node, ast.Call)}
        found = [(node.lineno, path_of(node, variables), keywords.get(node, ())) for node in nodes
                 if isinstance(node, (ast.Attribute, ast.Name))]
        uses |= {use for use in found if use[1]}
    return uses


def faults_in(uses):
    """Those that are wrong: of a name that CuPy lacks, or with a keyword that it does not take."""
    for line, path, keywords in sorted(uses):
        try:
            parameters = KNOWN[path]
            bind(path, "**kwargs" if parameters is None else parameters, (), dict.fromkeys(keywords))
        except (KeyError, TypeError) as error:
            yield f"line {line}: {path}: {error!r}"


def test_each_name_that_is_used_exists_and_takes_its_arguments():
    uses = {path.relative_to(ROOT): uses_in(path.read_text(encoding="utf-8"))
            for package in ("minigrad", "transformer") for path in (ROOT / package).rglob("*.py")}
    assert [f"{file}, {fault}" for file, found in uses.items() for fault in faults_in(found)] == []
    used = {path for found in uses.values() for _, path, _ in found}
    assert used >= {"sqrt", "add.at", "cuda.Device.synchronize", "cuda.runtime.getDeviceCount", "from_dlpack"}
    assert len(used) >= 50


@pytest.mark.parametrize("wrong", [
    "xp(x).max(x, initial=0)",
    "namespace, n = xp(x), x.ndim\n    namespace.add.att(x, 0, 1)",
    "sqrt = xp(x).sqrt\n    sqrt(x, where=x)",
    "return lambda namespace: namespace.expp",
    "module = numpy if x is None else module_for(x)\n    module.vecdot",
    "module_for(x).cuda.Device(0).memory",
])
def test_a_wrong_use_is_found(wrong):
    assert list(faults_in(uses_in(f"def f(x):\n    {wrong}\n")))
    assert not list(faults_in(uses_in("def f(x):\n    xp(x).exp(x, out=x)\n    numpy.errstate(all='ignore')\n")))


def test_the_names_are_those_of_the_installed_cupy():
    cupy = pytest.importorskip("cupy", exc_type=ImportError)
    if cupy.__version__ != NAMES["cupy"]:
        pytest.skip(f"CuPy {cupy.__version__} is installed, and names.json is of {NAMES['cupy']}")
    assert importlib.import_module("tests.strict_cupy.make_names").names() == NAMES
