"""Each name and keyword of CuPy that the sources use exists: by names.json, by a list made elsewhere, by CuPy itself.

The sources are read, not run (`tests.strict_cupy.uses`), so lines that no test on the stand-in reaches are checked too.
"""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.strict_cupy.facts import sources
from tests.strict_cupy.lookup import NAMES, TABLE, Call, compact, misfit, signature
from tests.strict_cupy.uses import GIVE_NAMESPACE, uses_in

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared/cupy/cupy_14.2.0_names.json"

# Methods called with a keyword that a GPU's array does not take, on arrays that are always the host's.
HOST_ONLY = {
    "minigrad.tensor.notebook._heat_map: max(initial=)": "the means of blocks were copied to the host for the page",
    "transformer.explore.identities._worst: max(initial=)": "the explained head's matrices are the host's",
}
OF_LISTS = {"key", "reverse"}  # list.sort takes these, and no array does


@pytest.fixture(scope="module")
def texts():
    return sources(ROOT)


@pytest.fixture(scope="module")
def facts(texts):
    return uses_in(texts)


# --- What the sources use -------------------------------------------------------------------------


def test_each_name_that_is_used_exists_and_takes_its_arguments(facts):
    assert facts.faults() == []


def test_methods_are_called_with_keywords_that_arrays_on_a_gpu_take_too(facts):
    refused = set()
    for use in facts.array_uses:
        parameters = NAMES["ndarray"].get(use.name)
        keywords = tuple(key for key in use.keywords if key not in OF_LISTS)
        if parameters is not None and hasattr(np.ndarray, use.name):
            refused |= {f"{use.place.partition(':')[0]}.{use.function}: {use.name}({key}=)" for key in keywords
                        if misfit(signature(parameters), Call(None, (key,)))}
    assert sorted(refused) == sorted(HOST_ONLY)


def test_no_attribute_is_used_that_only_arrays_of_numpy_have(facts):
    only = {name for name in dir(np.ndarray) if not name.startswith("_")} - set(NAMES["ndarray"])
    assert {"setflags", "ctypes"} <= only
    assert [use for use in facts.array_uses if use.name in only] == []


def test_the_sources_are_not_read_past(facts, texts):
    """What a search for patterns sees, the reader has seen: and through variables, arguments and tuples too."""
    names = {use.name for use in facts.uses}
    calls = {(use.place.partition(":")[0], use.name, use.call.keywords) for use in facts.uses if use.call}
    assert len(names) >= 90
    assert len(calls) >= 130
    pattern = re.compile(r"(?:\bxp\(\w+\)|\bnamespace)\.(\w+)")
    for module, text in texts.items():
        seen = {use.name for use in facts.uses if use.place.startswith(f"{module}:")}
        assert {f"cupy.{name}" for name in pattern.findall(text)} <= seen, module
    assert calls >= {
        ("minigrad.optim.adam", "cupy.sqrt", ()),  # sqrt = xp(p).sqrt
        ("minigrad.precision.half", "cupy.matmul", ("out",)),
        ("minigrad.functional.more.losses", "cupy.log1p", ()),  # an argument of another function
        ("minigrad.ops.more.arithmetic", "cupy.trunc", ()),
        ("minigrad.device.devices", "cupyx.scipy.special.erf", ()),  # getattr(special, name)
        ("minigrad.device.devices", "cupy.cuda.Device.synchronize", ()),  # a method of what a function of ours returns
        ("minigrad.device.devices", "cupy.cuda.runtime.getDeviceCount", ()),  # by importlib, and given as an argument
        ("minigrad.device.writing", "cupy.add.at", ()),
    }


def test_what_gives_a_namespace_is_only_ever_called(facts):
    """``map(xp, arrays)``, say, would hide a namespace from the reader."""
    for module, tree in facts.trees.items():
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        hidden = [node.lineno for node in ast.walk(tree) if id(node) not in called
                  and getattr(node, "id", getattr(node, "attr", None)) in GIVE_NAMESPACE]
        assert hidden == [], module


# --- The names that it goes by --------------------------------------------------------------------


def test_the_names_agree_with_a_list_made_elsewhere():
    if not SHARED.exists():
        pytest.skip(f"there is no {SHARED.parent.name}/{SHARED.name} beside the project")
    given = json.loads(SHARED.read_text(encoding="utf-8"))
    assert given["cupy_version"] == NAMES["cupy"]
    assert given["ufuncs"] == list(NAMES["ufuncs"])
    for section, ours in (("cupy", "functions"), ("linalg", "linalg"), ("random", "random")):
        signatures = {name: compact(text) for name, text in given[section].items() if text}
        assert len(signatures) > 20
        assert signatures == {name: NAMES[ours][name] for name in signatures}
    modules = {"annotations", "linalg", "optimizing", "profiler", "scipy", "time"}  # names.json has no modules
    for section in ("ndarray", "Generator", "special", "cupyx"):
        assert {name for name in given[section] if not name.startswith("_")} - modules == set(NAMES[section])


OTHER_VERSION = "CuPy {} is installed, and names.json is of " + NAMES["cupy"]


@pytest.fixture(scope="module")
def cupy():
    """The real package: neither a driver nor a GPU is needed to look at it."""
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        pytest.skip(f"CuPy cannot be imported here: {str(error).strip().partition(chr(10))[0]}")


def real(name):
    """CuPy's own object of this full name, and what it is an attribute of; None for what needs a missing library."""
    importlib.import_module("cupyx.scipy.special")
    top, *path = name.split(".")
    owner, found = None, importlib.import_module(top)
    for part in path:
        try:
            owner, found = found, getattr(found, part)
        except ImportError:  # cupy.cuda.cublas, without libcublas
            return None, None
    return owner, found


def test_what_is_used_is_in_the_installed_cupy(cupy, facts):
    checked = 0
    for use in facts.uses:
        owner, found = real(use.name)
        if use.call and inspect.isroutine(found) and inspect.ismodule(owner):
            try:
                its = inspect.signature(found)
            except ValueError:  # Cython kept none
                continue
            assert misfit(its, use.call) is None, use
            checked += 1
    assert checked >= 60


def test_the_names_are_those_of_the_installed_cupy(cupy):
    if cupy.__version__ != NAMES["cupy"]:
        pytest.skip(OTHER_VERSION.format(cupy.__version__))
    if real("cupy.cuda.cublas")[1] is None:
        pytest.skip("libcublas, which make_names.py needs, cannot be loaded")
    made = importlib.import_module("tests.strict_cupy.make_names").names()
    assert list(made) == list(NAMES)
    for section in made:
        assert made[section] == NAMES[section], section


def test_every_name_in_the_table_is_in_the_installed_cupy(cupy):
    if cupy.__version__ != NAMES["cupy"]:
        pytest.skip(OTHER_VERSION.format(cupy.__version__))
    for name in TABLE:
        real(name)
