"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operand."""

import asyncio
import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import Tensor, func, gradcheck, gradgradcheck, nn, optim
from minigrad import functional as F
from minigrad.engine.primitive import public

from tests.minigrad.nn.model import Block, Model

X = Tensor(np.arange(6.0).reshape(2, 3), dtype=np.float32, requires_grad=True)
V = Tensor(np.arange(3.0), dtype=np.float32, requires_grad=True)
P = Tensor(np.ones(3), requires_grad=True)
PAIR = nn.ModuleList([nn.ReLU(), nn.ReLU()])
QKV, SIDE_BY_SIDE = ((2, 3, 5), (2, 4, 5), (2, 4, 3)), [(2, 3, 6)] * 3
MODULES = asyncio, copy, pickle, mg, F, nn, np, optim, func, Tensor, Block, Model, gradcheck, gradgradcheck
NAN = np.nan


def ones(*shape):
    return Tensor(np.ones(shape), requires_grad=True)


def suspended():
    yield


async def ticks():
    yield


def attend(*shapes, mask=None, **options):
    return F.scaled_dot_product_attention(*[ones(*shape) for shape in shapes], mask, **options)


def heads(*shapes, num_heads=2, **options):
    return F.multi_head_attention(*[ones(*shape) for shape in shapes], num_heads, **options)


CALLS = {  # the kind of the error; the operation that it names, and the call: one for each refusal
    ValueError: """
        add: X + X.T
        clip: mg.clip(X)
        .any(): bool(X > 0)
        item: X.item()
        var: X.var((0, 0))
        mT: V.mT
        flatten: X.flatten(1, 0)
        concatenate: mg.concatenate([])
        agree: mg.concatenate([X, X, V])
        split: X.split([1, 1], axis=1)
        split: X.split([4, -1], axis=1)
        matmul: X @ X
        gather: X.gather(0, [[0, 0, 0, 0]])
        grad: setattr(P.detach().requires_grad_(), "grad", Tensor([1.0]))
        grad: setattr(P.detach().requires_grad_(), "grad", Tensor(np.ones(3, np.float32)))
        input 1 (shape (1,)) does not require: mg.grad(X, [X, Tensor([1.0])])
        2 outputs but 1 grad_outputs: mg.grad([X, X], X, [None])
        shape (2,): mg.grad(X * 2, X, np.ones(2))
        one element: mg.grad(X * 2, X)
        threads: mg.parallel.threads(0).__enter__()
        seed: mg.manual_seed(-1)
        seed: mg.manual_seed(2**64)
        get_state: mg.random.set_state({})
        get_state: mg.random.set_state(mg.random.get_state() | {"generator": {}})
        the scale: mg.GradScaler().load_state_dict({"scale": 0.0, "_growth_tracker": 3})
        the scale: mg.GradScaler(1e39)
        gelu: F.gelu(X, approximate="sigmoid")
        layer_norm: F.layer_norm(X, None, ones(2, 3))
        layer_norm: F.layer_norm(V.sum())
        rms_norm: F.rms_norm(X, ones(2))
        rms_norm: F.rms_norm(V.sum())
        rms_norm: F.rms_norm(X, None, NAN)
        dropout: F.dropout(X, -0.1, training=False)
        dropout: F.dropout(X, 1, training=False)
        dropout_with_mask: F.dropout_with_mask(X.detach(), X.detach() > 0, 1)
        embedding: F.embedding([0, 1], X[0])
        embedding: F.embedding([0], X, 2)
        embedding: F.embedding([0], X, -3)
        one_hot: F.one_hot([0], 0)
        one_hot: F.one_hot(np.zeros(0, int))
        linear: F.linear(X, ones(5, 4))
        linear: F.linear(X, ones(3))
        linear: F.linear(X, ones(5, 3), ones(1))
        mse_loss: F.mse_loss(X, np.ones((2, 1)))
        mse_loss: F.mse_loss(X, X, reduction="average")
        cross_entropy: F.cross_entropy(X, [[0], [1]])
        cross_entropy: F.cross_entropy(X, [0, 1], label_smoothing=1.5)
        cross_entropy: F.cross_entropy(X, [0, 1], label_smoothing=-0.1)
        scaled_dot_product_attention: attend(*QKV, mask=np.ones((2, 1, 3, 4), bool))
        scaled_dot_product_attention: attend((3, 5), (4, 6), (4, 2))
        scaled_dot_product_attention: attend((3, 5), (4, 5), (3, 2))
        scaled_dot_product_attention: attend((5,), (4, 5), (4, 2))
        scaled_dot_product_attention: attend((2, 3, 5), (3, 4, 5), (2, 4, 5))
        6 heads: attend((2, 6, 3, 5), (2, 4, 4, 5), (2, 4, 4, 5), enable_gqa=True)
        value 3: attend((2, 6, 3, 5), (2, 2, 4, 5), (2, 3, 4, 5), enable_gqa=True)
        heads: attend((3, 5), (4, 5), (4, 5), enable_gqa=True)
        attn_bias: attend(*QKV, attn_bias=ones(2, 1, 3, 4))
        attn_bias: heads(*SIDE_BY_SIDE, attn_bias=ones(2, 3, 3, 1))
        scaled_dot_product_attention: attend(*QKV, dropout_p=1.0)
        num_heads: heads(*SIDE_BY_SIDE, num_heads=0)
        multi_head_attention: heads(*SIDE_BY_SIDE, num_heads=4)
        query: heads((3, 6), (3, 6), (3, 6))
        query: heads((2, 3, 6), (2, 3, 6), (2, 3, 5))
        query: heads((2, 3, 6), (2, 3, 4), (2, 3, 6))
        query: heads((2, 3, 6), (2, 4, 6), (2, 3, 6))
        size: nn.Linear(0, 3)
        padding_idx: nn.Embedding(3, 3, padding_idx=3)
        Dropout: nn.Dropout(1.0)
        xavier_uniform_: nn.init.xavier_uniform_(P)
        xavier_uniform_: nn.init.xavier_uniform_(mg.zeros((0, 3)))
        SGD: optim.SGD([])
        SGD: optim.SGD([{"params": [P]}, {"params": [P]}])
        SGD: optim.SGD([P * 2.0])
        weight_decy: optim.SGD([{"params": [P], "weight_decy": 0}])
        momentum: optim.SGD([P], momentum=-0.1)
        lr: optim.AdamW([{"params": [P], "lr": 0.1}], lr=-1)
        eps: optim.Adam([P], eps=10**400)
        beta: optim.Adam([P], betas=(1.0, 0.9))
        many: optim.Adam([P], betas=(0.9, 0.9, 0.9))
        clip_grad_norm_: optim.clip_grad_norm_(P, 0.0)
        total_steps: optim.CosineLR(optim.SGD([P]), 10, 10)
        min_ratio: optim.CosineLR(optim.SGD([P]), 1, 10, -0.5)
        last_step: optim.LambdaLR(optim.SGD([P]), lambda step: 1.0).load_state_dict({"last_step": -1})
        the rate: optim.LambdaLR(optim.SGD([P]), lambda step: NAN)
        grad: func.grad(lambda x: x)(X)
        grad: func.grad(lambda x: 1.0)(X)
        argnums: func.grad(lambda x: x.sum(), 1)(X)
        hvp: func.hvp(lambda d: d["a"].sum(), {"a": P}, {"b": P})
        functional_call: func.functional_call(Block(), {"bias": P})
        'scale': func.functional_call(Block(), {"scale": 3.0}, X)
        gradcheck: gradcheck(mg.exp, P.detach())
        gradgradcheck: gradgradcheck(mg.exp, [])
        not finite: gradcheck(mg.log, Tensor(np.array([1.0, np.inf]), requires_grad=True))
        gradcheck: gradcheck(mg.argmax, P)
    """,
    TypeError: """
        add: X + None
        mul: X * [None]
        Tensor: V.numpy().copy().__imul__(V)
        Tensor: np.exp(X)
        .detach().numpy(): np.asarray(X)
        .detach(): pickle.dumps(X)
        where: mg.where(X.detach(), X, 0)
        where: mg.where(X > 0, X, None)
        sum: mg.sum(X, dim=1)
        astype: X.astype(complex)
        got 0: X.to(0)
        astype: X.astype(None)
        grad: mg.grad(X.sum(), 3)
        .to(dtype=dtype): mg.nn.Linear(2, 2).to(np.float64)
        var: X.var(correction="1")
        only floating tensors: Tensor([0, 1], requires_grad=True)
        only floating tensors: Tensor([True]).requires_grad_()
        norm: mg.norm([3.0, 4.0])
        repeat: X.repeat([1.0, 2.0], 0)
        matmul: X @ 2
        take: X.take([0.5], axis=0)
        from_numpy: mg.from_numpy(np.zeros(2, complex))
        from_numpy: mg.from_numpy([1])
        minigrad.stack: Tensor([P.sum(), P.sum() * 2])
        grad: setattr(P.detach().requires_grad_(), "grad", np.ones(3))
        input 0 is a ndarray: mg.grad(X, [np.ones(1)])
        threads: mg.parallel.threads(True).__enter__()
        integer: mg.manual_seed(1.0)
        float32: [1, 2][X[0, 0]]
        0-d: iter(X.sum())
        dropout_with_mask: F.dropout_with_mask(X.detach(), X.detach(), 0.5)
        layer_norm: F.layer_norm(X, None, None, "x")
        integer: F.cross_entropy(X, [0, 1], ignore_index=0.5)
        embedding: F.embedding([0.0, 1.0], X)
        cross_entropy: F.cross_entropy(X, [True, False])
        True where a query may attend: attend(*QKV, mask=np.ones((3, 4)))
        True where a query may attend: attend(*QKV, mask=[[True] * 4] * 3)
        dropped: attend(*QKV, dropped=np.ones((3, 4)))
        attn_bias: attend(*QKV, attn_bias=np.ones((3, 4), bool))
        size: nn.LayerNorm((3, 4))
        eps: nn.LayerNorm(3, "1")
        Block.to: Block().to(dtype=np.int64)
        Block.train: Block().train("eval")
        a function, got 3: X.register_hook(3)
        Block.scale: setattr(Block(), "scale", P.detach())
        Block.offset: setattr(Block(), "offset", np.ones(3))
        ModuleList: setattr(Block(), "parts", (1, nn.ReLU()))
        ModuleList: setattr(Block(), "parts", {"a": nn.ReLU()})
        fresh: Block().register_buffer("fresh", np.ones(1))
        Module: PAIR.append(max)
        ModuleList: PAIR(1)
        count: Model().load_state_dict({"count": [7]}, strict=False)
        load_tensors: Model().load_state_dict("model.safetensors", strict=False)
        SGD: optim.SGD(P)
        ndarray: optim.SGD([np.ones(2)])
        momentum: optim.SGD([P], momentum=None)
        warmup_steps: optim.CosineLR(optim.SGD([P]), "x", 10)
        int64: func.grad(lambda x: x.sum())(Tensor([1, 2]))
        vjp: func.vjp(lambda x: 1.0, X)
        jvp: func.jvp(mg.exp, X, (X,))
        jacobian: func.jacobian(lambda x: (x, x))(X)
        float32: gradcheck(mg.exp, X)
        suspended: mg.no_grad()(suspended)
        sleep: mg.no_grad()(asyncio.sleep)
        ticks: mg.no_grad()(ticks)
    """,
    IndexError: """
        sum: X.sum(axis=2)
        softmax: F.softmax(X[:0], 2)
        getitem: X[2]
        take: X.take([0, 2], axis=0)
        take: X.take([0], axis=2)
        embedding: F.embedding([[0, 1], [9, -2]], X)
        one_hot: F.one_hot([0, 3], 3)
        cumsum: mg.cumsum(X.sum(), axis=1)
        sort: mg.sort(X.sum(), axis=1)
        cross_entropy: F.cross_entropy(X, [0, -1])
        index out of range: PAIR[2]
        index out of range: PAIR.__setitem__(-3, nn.ReLU())
    """,
    OverflowError: """
        sum: X.sum(axis=10**30)
        int64: Tensor([2**63])
    """,
    BufferError: ".detach(): np.from_dlpack(X)",
    NotImplementedError: "Module: nn.Module()(1)",
    RuntimeError: """
        grad: mg.grad(V.detach().sum(), X)
        retain_grad: V.detach().retain_grad()
        .detach(): copy.copy(X * 2)
        .detach(): copy.deepcopy(X * 2)
        register_hook: V.detach().register_hook(print)
        .detach(): setattr(X * 2, "requires_grad", False)
        require a gradient: V.detach().clone().copy_(V * 2)
        broadcast view: mg.broadcast_to(V.detach(), (2, 3)).__setitem__(0, 9.0)
        read-only memory: mg.from_numpy(np.frombuffer(bytes(8))).copy_([1.0])
    """,
}


@pytest.mark.parametrize(("kind", "line"), [(k, line.strip()) for k in CALLS for line in CALLS[k].strip().splitlines()])
def test_wrong_calls(kind, line):
    """As one operation and by steps."""
    operation, _, call = line.partition(": ")
    for fused in (True, False):
        with pytest.raises(kind) as caught, mg.fused(fused):
            eval(call, globals())  # noqa: S307 - of our own writing
        assert type(caught.value) is kind
        assert operation in str(caught.value)
        assert "\n" not in str(caught.value)
    assert len(PAIR) == 2


@pytest.mark.parametrize(("name", "call"), [
    ("take", "mg.take(X, [0, -5], axis=0)"), ("sum", "X.sum().sum(axis=1)"), ("embedding", "F.embedding([9, -2], X)")])
def test_wrong_calls_on_a_gpu_say_the_same(name, call, gpu):
    """Ids and indices are checked on the host: the GPU itself would wrap them silently."""
    with pytest.raises(IndexError, match=f"^{name}: "):
        eval(call, globals() | {"X": X.detach().to(gpu)})  # noqa: S307 - of our own writing


def test_the_name_is_that_of_the_function_called_by_the_user():
    @public
    def outer(x, axis=0):
        return inner(x, axis)

    @public
    def inner(x, axis):
        return mg.cumsum(x, axis)

    with pytest.raises(IndexError, match=r"^outer: axis 3 is out of bounds") as caught:
        outer(Tensor([1.0, 2.0]), axis=3)
    assert str(caught.value.__cause__).startswith("inner: ")  # the way there stays in the traceback


def test_an_attribute_error_inside_a_forward_stays_one():
    """It is not taken for an operand that is no array."""
    @mg.primitive
    def broken(x):
        return x.nothing_of_the_kind

    broken.gradient(x=lambda g: g)
    with pytest.raises(AttributeError, match=r"broken: .*nothing_of_the_kind"):
        broken(Tensor([1.0]))
