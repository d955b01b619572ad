"""program: what is written runs with NumPy alone and gives the loss and the gradients, of other parameters, too."""

import ast
import re
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func, nn
from minigrad import functional as F
from minigrad.inspect import program
from minigrad.inspect.program import sections

from tests.minigrad.inspect.programs import leaf
from tests.minigrad.ops.row import function, table
from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import LanguageModel


def leaves(*shapes):
    rng = np.random.default_rng(0)
    return {name: Tensor(rng.normal(size=shape), requires_grad=True)
            for name, shape in zip("xyz", shapes, strict=False)}


def hook(tensor, function):
    tensor.register_hook(function)
    return tensor


NAMES = {"mg": mg, "F": F, "func": func, "np": np, "hook": hook, "unasked": leaf(4),
         "cubes": lambda a: (a**3 + a).sum()}
# Rules that add into places and repeat an index; a long float32 sum; slices beside arrays, and indices of one part or
# none; a leaf whose gradient nobody asks for; hooks; derivatives.
EXPRESSIONS = """
    (x * y).sum()                                                                        (2, 3), (2, 3)
    (x[:, 1:] * y[[0, 0, 1]].sum() + F.embedding([1, 0, 1], y).mean()).sum()             (3, 4), (2, 4)
    (mg.concatenate([x, y]).max() * x[1, -1] * x.sum()[()])                              (3, 4), (2, 4)
    (F.embedding(np.arange(3000) % 7, x.astype("float32")) ** 2).sum()                   (7, 2),
    (x[:, [0, 2]].sum() * mg.take(x, [1, 1], axis=1)[..., 1:] * x[:, [0, 1]]).sum()      (3, 4),
    (x[::-2, [[3]]] * x[[0, 2],] ** 2).sum()                                             (3, 4),
    (F.linear(unasked[None] * unasked, x) ** 2).sum()                                    (3, 4),
    (hook(x * y, lambda g: g * y * 3) * hook(y * y, mg.ones_like)).sum()                 (2, 3), (2, 3)
    (func.grad(cubes)(x) * y).sum() + func.jvp(cubes, (x,), (y.detach(),))[1]            (2, 3), (2, 3)
"""


def names():
    """Such as need a backslash in Python; two of one tensor; a leaf with a hook."""
    x, y = leaves((2,), (2,)).values()
    x.register_hook(lambda g: g * 3)
    return lambda: (x * y * y).sum(), {'a"b': x, "c\\d'\n": y, "again": y}


def rotary():
    mg.manual_seed(0)
    model = LanguageModel(9, 8, 2, 1, positions="rotary").to(dtype=np.float64)
    return lambda: model.loss([[1, 2, 3, 4]]), model


def transformer(dtype=np.float64, **options):
    model = tiny_model(dtype, dropout=0.1, **options)
    return lambda: model.loss(SOURCE, LABELS, label_smoothing=0.1), model


def expressed(expression, shapes):
    tensors = leaves(*shapes)
    return lambda: function(expression, NAMES)(*tensors.values()), tensors


CASES = {
    **{row[0]: partial(expressed, *row) for row in table(EXPRESSIONS)},
    "names": names,
    "rotary": rotary,
    "transformer": transformer,
    "post-norm, one table": partial(transformer, norm="post", activation="gelu", share_embeddings=True,
                                    tie_output=True),
    "float32": partial(transformer, np.float32),
}


def gradients(loss_of, tensors, state):
    mg.random.set_state(state)
    loss = loss_of()
    return loss.item(), dict(zip(tensors, mg.grad(loss, list(tensors.values())), strict=True))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_program_gives_the_loss_and_the_gradients(case, fused):
    loss_of, wrt = case()
    tensors, state = dict(wrt.named_parameters()) if isinstance(wrt, nn.Module) else wrt, mg.random.get_state()
    kinds = {name: type(tensor.data) for name, tensor in tensors.items()}
    with mg.fused(fused):
        text, arrays = program(loss_of, wrt)
    assert {type(node) for node in ast.parse(text).body} <= {ast.Import, ast.ImportFrom, ast.FunctionDef}
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE)) <= {"numpy", "scipy"}
    namespace = {}
    exec(text, namespace)
    assert {name: type(tensor.data) for name, tensor in tensors.items()} == kinds
    for _ in range(2):  # and once more with other parameters: nothing of them was taken for a constant
        loss, found = namespace["step"](arrays)
        with mg.fused(fused):
            value, expected = gradients(loss_of, tensors, state)
        digits = {"rtol": 2e-5, "atol": 2e-6} if loss.dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-13}
        np.testing.assert_allclose(loss, value, **digits)
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            np.testing.assert_allclose(found[name], gradient.numpy(), err_msg=name, **digits)
        rng = np.random.default_rng(2)
        for name, tensor in tensors.items():
            tensor.copy_(tensor.numpy() + 0.1 * rng.normal(size=tensor.shape).astype(tensor.dtype))
            arrays[name] = tensor.numpy().copy()


@pytest.mark.parametrize("write", [
    lambda x, constant: constant.copy_(x.detach() * 2),
    lambda x, constant: constant.__setitem__(x.argmax(), 1.0),
    lambda x, constant: np.add(constant.numpy(), x.detach()._data, out=constant._data),
])
def test_a_constant_into_which_a_parameter_is_written_is_an_error(write):
    """Else it would stand in the program as what it is for these parameters."""
    x, constant = leaves((3,))["x"], Tensor(np.zeros(3))

    def loss():
        write(x, constant)
        return (x * constant).sum()

    with pytest.raises(RuntimeError, match="in place into a constant of shape"):
        program(loss, {"x": x})


def test_a_function_stands_for_each_kind_of_layer_and_a_section_says_whose_its_lines_are():
    found, arrays = sections(*transformer())
    functions = {section.lines[0].partition("(")[0][4:]: section for section in found}
    assert {"linear", "layer_norm", "multi_head_attention", "step"} < functions.keys()
    backward = functions["multi_head_attention_backward"]
    assert (backward.backward, set(backward.modules)) == (True, {
        "decoder.layers.0.cross_attention", "decoder.layers.0.self_attention", "encoder.layers.0.self_attention"})
    calls = "".join(line for section in found if section.modules[:1] == ["encoder.norm"] for line in section.lines)
    assert re.findall(r"(layer_norm\w*)\(", calls) == ["layer_norm", "layer_norm_backward"]
    text = "".join(line for section in found for line in section.lines)
    assert all(f'p["{name}"]' in text for name in arrays)
