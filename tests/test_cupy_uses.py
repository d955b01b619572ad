"""The reader that `test_cupy_names` relies on: it finds what is wrong in sources that are wrong on purpose."""

from pathlib import Path

import pytest

from tests.strict_cupy.facts import sources
from tests.strict_cupy.lookup import NAMES, Call, misfit, signature
from tests.strict_cupy.uses import uses_in


def faults_in(*texts):
    """What is wrong in sources called one, two, …; each starts with what the modules of ours import."""
    modules = {f"ours.{name}": text for name, text in zip(("one", "two"), texts, strict=False)}
    return uses_in(modules).faults()


WRONG = {
    "xp(x).expp(x)": "cupy.expp does not exist",
    "xp(x).exp": None,
    "xp(x).exp(x, where=x > 0)": "unexpected keyword argument 'where'",
    "xp(x).exp(x, out=x, dtype=None)": None,
    "xp(x).exp()": "missing a required argument",
    "xp(x).add(x)": "missing a required argument",
    "xp(x).add(x, x, x)": None,
    "xp(x).add(x, x, x, x)": "too many positional arguments",
    "xp(x).divmod(x, x, x, x)": None,
    "xp(x).add(*x)": None,
    "xp(x).add(*x, where=x)": "'where'",
    "xp(x).max(x, initial=0)": "unexpected keyword argument 'initial'",
    "xp(x).max(x, **options)": None,
    "xp(x).take(x, x, 0, None, 'clip')": "too many positional arguments",
    "xp(x).take_along_axis(x, x)": "missing a required argument: 'axis'",
    "xp(x).concatenate(x, 0, axis=0)": "multiple values for argument 'axis'",
    "xp(x).add.at(x, 0)": None,
    "xp(x).add.att(x, 0, 1)": "cupy.add.att does not exist",
    "xp(x).add.reduce(x, initial=0)": "'initial'",
    "xp(x).linalg.multi_dot(x)": "cupy.linalg.multi_dot does not exist",
    "xp(x).random.default_rng(0).normal()": "cupy.random.Generator.normal does not exist",
    "xp(x).random.default_rng(0).random(3, dtype='f', out=None)": None,
    "xp(x).zeros(3).setflags()": "cupy.ndarray.setflags does not exist",
    "xp(x).zeros(3)[0].T.sum(initial=0)": "'initial'",
    "xp(x).where(x, x, 0).reshape(2, 3).mean(where=x)": "'where'",
    "xp(x).zeros(3).device.synchronise()": "cupy.cuda.Device.synchronise does not exist",
    "module_for(x).cuda.Device(0, 1)": "too many positional arguments",
    "module_for(x).cuda.Device(0).mem_info[0]": None,
    "module_for(x).cuda.Device(0).memory": "cupy.cuda.Device.memory does not exist",
    "module_for(x).cuda.cublas.CUBLAS_TF32_TENSOR_OP_MATH": "CUBLAS_TF32_TENSOR_OP_MATH does not exist",
    "module_for(x).cuda.cublas.setMathMode(3)": "missing a required argument: 'mode'",
    "require_cuda().get_default_memory_pool().used()": "cupy.cuda.MemoryPool.used does not exist",
    "device.xp(x).expp": "cupy.expp",
    "namespace_of(x).expp": "cupy.expp",
    "importlib.import_module('cupy').expp": "cupy.expp",
    "importlib.import_module('scipy.special' if x else 'cupyx.scipy.special').erff": "cupyx.scipy.special.erff",
    "importlib.import_module('cupyx.scipy.stats')": "cupyx.scipy.stats",
    "[y for y in x if xp(y).expp(y)]": "cupy.expp",
    "{y: xp(y).expp for y in x}": "cupy.expp",
    "(lambda y: xp(y).expp(y))": "cupy.expp",
    "(lambda y=xp(x).expp: y)": "cupy.expp",
    "(lambda y: y.expp)(xp(x))": "cupy.expp",
    "f'{xp(x).expp(x)}'": "cupy.expp",
    "(xp(x).sin if x else xp(x).coss)(x)": "cupy.coss",
    "(xp(x).isnan if x else xp(x).isinf)(x, where=x)": "'where'",
    "getattr(xp(x), 'expp')": "cupy.expp",
    "getattr(xp(x), 'exp')(x, where=x)": "'where'",
    "getattr(xp(x), 'expp', None)": None,
    "getattr(xp(x), x + 'p')": "<a computed name>",
    "numpy.expp(x)": None,
}  # fmt: skip


@pytest.mark.parametrize(("expression", "wrong"), WRONG.items(), ids=WRONG)
def test_an_expression(expression, wrong):
    found = faults_in(f"import importlib, numpy\nfrom ours.device import xp as namespace_of\ny = {expression}\n")
    assert wrong in "".join(found) if wrong else found == []


@pytest.mark.parametrize(
    "statements",
    [
        "namespace = xp(x)\nnamespace.expp(x)",
        "multiply = xp(x).multiply\nmultiply(x, x, where=x)",
        "matmul, (a, b) = xp(x).matmul, x\nmatmul(x, x, where=x)",
        "namespace, n = xp(x), x.ndim\nnamespace.expp(x)",
        "if (namespace := xp(x)) is not None:\n    namespace.expp(x)",
        "if x:\n    f = xp(x).exp\nelse:\n    f = abs\nf(x, where=x)",
        "if x:\n    namespace = xp(x)\nnamespace.expp",
        "for y in x:\n    f = xp(y).exp\nf(x, where=x)",
        "while xp(x).expp(x):\n    pass",
        "try:\n    pass\nexcept xp(x).cuda.runtime.CUDAError:\n    pass",
        "try:\n    f = xp(x).exp\nexcept ValueError:\n    pass\nf(x, where=x)",
        "with xp(x).cuda.Device(0) as gpu:\n    gpu.memory",
        "match x:\n    case 1:\n        xp(x).expp",
        "x[xp(x).expp] = 1",
        "x += xp(x).expp(x)",
        "f: object = xp(x).exp\nf(x, where=x)",
        "def f(namespace):\n    namespace.expp",
        "def f(x, y=xp(x).expp):\n    pass",
        "@xp(x).expp\ndef f():\n    pass",
        "namespace = xp(x)\ndef f(x):\n    return namespace.expp(x)",
        "def f(x):\n    namespace = xp(x)\n    def g():\n        return namespace.expp\n    return g",
        "def f(x):\n    return xp(x)\nf(x).expp",
        "def f(x):\n    return xp(x).exp\nf(x)(x, where=x)",
        "def f(g, x):\n    return g(x, where=x)\nf(xp(x).exp, x)",
        "def f(x, g):\n    return g(x, where=x)\nf(x, g=xp(x).exp)",
        "def f(x, g):\n    return g(x, where=x)\nf(*x, g=xp(x).exp)",
        "def f(make, x):\n    return make(xp(x))\nf(lambda m: m.expp, x)",
        "def f(make, x):\n    return make(xp(x))\ndef g(m):\n    return m.expp\nf(g, x)",
        "f = lambda x: xp(x)\nf(x).expp",
        "def f(name, x):\n    return getattr(xp(x), name)(x)\nf('exp', x)\nf('expp', x)",
        "cache = None\ndef f(x):\n    global cache\n    cache = xp(x)\ndef g():\n    return cache.expp",
        "class A:\n    def __init__(self, x):\n        self.of = xp(x)\n    def f(self):\n        return self.of.expp",
        "class A:\n    def f(self, g):\n        return g.expp\n    def h(self, x):\n        return self.f(xp(x))",
        "class A:\n    y = xp(x).expp",
        "out = xp(x).zeros(3)\nout.setflags()",
        "import cupy.special",
        "from cupy import expp",
        "import cupy as c\nc.expp",
        "from cupy.cuda import cublas\ncublas.getMode",
    ],
)
def test_a_wrong_use_is_found_through(statements):
    assert len(faults_in(statements)) == 1


def test_a_name_that_is_given_another_value_is_let_go():
    assert faults_in("f = xp(x).exp\nf = other\nf(x, where=x)") == []
    assert faults_in("out = xp(x).zeros(3)\nout = wrap(out)\nout.backward()") == []


def test_values_pass_between_modules():
    caller = "from ours.two import apply, LIBRARY\napply(xp(x).exp, x)\nLIBRARY.expp"
    called = "def apply(f, x):\n    return f(x, where=x)\nLIBRARY = module_for('cuda')"
    found = faults_in(caller, called)
    assert [line.partition(" ")[0] for line in found] == ["ours.one:3:", "ours.two:2:"]
    found = faults_in("from ours import two\ntwo.f(xp(x))", "def f(g):\n    g.expp")
    assert [line.partition(" does")[0] for line in found] == ["ours.two:2: cupy.expp"]


@pytest.fixture(scope="module")
def texts():
    return sources(Path(__file__).parents[1])


@pytest.mark.parametrize(
    ("module", "right", "wrong", "found"),
    [
        ("minigrad.optim.clip", "namespace.maximum(", "namespace.fmaximum2(", "cupy.fmaximum2 does not exist"),
        ("minigrad.optim.adam", "sqrt = xp(p).sqrt", "sqrt = xp(p).square_root", "cupy.square_root"),
        ("minigrad.ops.more.arithmetic", "_step(xp(x).trunc, x)", "_step(xp(x).truncate, x)", "cupy.truncate"),
        ("minigrad.functional.more.losses", "xp(x).log1p, x", "xp(x).clip, x", "missing a required argument"),
        ("minigrad.device.devices", 'special_function("erf", x)', 'special_function("erff", x)',
         "cupyx.scipy.special.erff"),
        ("minigrad.device.devices", ".runtime.getDeviceCount()", ".runtime.deviceCount()",
         "cupy.cuda.runtime.deviceCount"),
        ("minigrad.device.writing", "namespace.add.at(array, index, values)",
         "namespace.add.at(array, index, values, 0)", "too many positional arguments"),
        ("minigrad.functional.loss", "namespace.exp(shifted)", "namespace.exp(shifted, where=top)", "'where'"),
        ("minigrad.device.memory", "pool.used_bytes()", "pool.bytes_used()", "cupy.cuda.MemoryPool.bytes_used"),
        ("minigrad.precision.gpu", "setMathMode(handle, before)", "setMathMode(before)", "missing a required argument"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_real_file_is_found(texts, module, right, wrong, found):
    assert right in texts[module]
    some = {name: texts[name] for name in ("minigrad.device.devices", module)}
    assert uses_in(some).faults() == []
    assert found in "".join(uses_in(some | {module: texts[module].replace(right, wrong)}).faults())


def test_a_keyword_that_a_method_on_a_gpu_lacks_is_noted():
    found = uses_in({"here": "def f(x):\n    return x.T.sum(axis=0, initial=1)\n"}).array_uses
    assert ("here:2", "f", "sum", ("axis", "initial")) in found
    assert misfit(signature(NAMES["ndarray"]["sum"]), Call(None, ("axis", "initial"))) is not None
