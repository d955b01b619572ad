"""Wrong calls: an exception at the call, of the type a Python user expects, naming the operation and the operand."""

import copy
import inspect
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
QKV, SIDE_BY_SIDE, MASK = ((2, 3, 5), (2, 4, 5), (2, 4, 3)), [(2, 3, 6)] * 3, np.ones((3, 4), bool)
MODULES = copy, pickle, mg, F, nn, np, optim, func, Tensor, Block, Model, gradcheck, gradgradcheck  # that calls name
INF, NAN = np.inf, np.nan


def ones(*shape):
    return Tensor(np.ones(shape), requires_grad=True)


def attend(*shapes, mask=None, **options):
    return F.scaled_dot_product_attention(*[ones(*shape) for shape in shapes], mask, **options)


def heads(*shapes, num_heads=2, **options):
    return F.multi_head_attention(*[ones(*shape) for shape in shapes], num_heads, **options)


CALLS = {  # the kind of the error; the operation that it names, and the call
    ValueError: """
        add: X + X.T
        masked_fill: V[:2].masked_fill(X > 0, 0)
        clip: mg.clip(X)
        .any(): bool(X > 0)
        item: X.item()
        'cuda': X.to("gpu")
        squeeze: X[:1].squeeze((0, 0))
        squeeze: X.squeeze(1)
        mT: V.mT
        transpose: X[None].transpose(0, 1)
        flatten: X.flatten(1, 0)
        reshape: X.reshape(4, -1)
        concatenate: mg.concatenate([X, X.T])
        concatenate: mg.concatenate([])
        stack: mg.stack([X, V])
        split: X.split([1, 1], axis=1)
        split: X.split(0)
        pad: mg.pad(X, ((1, 1),) * 3)
        pad: mg.pad(X, ((0, 0), (-1, 0)))
        repeat: X.repeat(-1, 0)
        repeat: X.repeat([1, 2, 3], 0)
        tile: X.tile((2, -1))
        matmul: X @ X
        matmul: mg.broadcast_to(X, (2, 2, 3)) @ mg.broadcast_to(X.T, (4, 3, 2))
        gather: X.gather(0, [[0, 0, 0, 0]])
        inhomogeneous: Tensor([[1, 2], [3]])
        grad: setattr(P.detach().requires_grad_(), "grad", Tensor([1.0]))
        grad: setattr(P.detach().requires_grad_(), "grad", Tensor(np.ones(3, np.float32)))
        input 1 (shape (1,)) does not require: mg.grad(X, [X, Tensor([1.0])])
        2 outputs but 1 grad_outputs: mg.grad([X, X], X, [None])
        shape (2,): mg.grad(X * 2, X, np.ones(2))
        one element: mg.grad(X * 2, X)
        backward: (X * 2).backward()
        shape (3,): (V * 2).backward(np.ones(2))
        threads: mg.parallel.threads(0).__enter__()
        one element: float(X)
        clip_grad_norm_: optim.clip_grad_norm_(P, -1.0)
        seed: mg.manual_seed(-1)
        seed: mg.manual_seed(2**64)
        step: mg.random.set_step(-1)
        get_state: mg.random.set_state({})
        get_state: mg.random.set_state(mg.random.get_state() | {"step": "2"})
        get_state: mg.random.set_state(mg.random.get_state() | {"call": None})
        get_state: mg.random.set_state(mg.random.get_state() | {"generator": {}})
        the scale: mg.GradScaler().load_state_dict({"scale": 0.0, "_growth_tracker": 3})
        gelu: F.gelu(X, approximate="sigmoid")
        layer_norm: F.layer_norm(X, ones(2))
        layer_norm: F.layer_norm(X, None, ones(2, 3))
        layer_norm: F.layer_norm(V.sum())
        rms_norm: F.rms_norm(X, ones(2))
        rms_norm: F.rms_norm(V.sum())
        rms_norm: F.rms_norm(X, None, NAN)
        dropout: F.dropout(X, -0.1, training=False)
        dropout: F.dropout(X, 1, training=False)
        dropout: F.dropout(X, NAN, training=False)
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
        cross_entropy: F.cross_entropy(X, [0, 1], reduction="average")
        nll_loss: F.nll_loss(X, [0, 1], reduction="average")
        cross_entropy: F.cross_entropy(X, [[0], [1]])
        cross_entropy: F.cross_entropy(X, [0, 1], label_smoothing=NAN)
        cross_entropy: F.cross_entropy(X, [0, 1], label_smoothing=1.5)
        cross_entropy: F.cross_entropy(X, [0, 1], label_smoothing=-0.1)
        scaled_dot_product_attention: attend(*QKV, mask=np.ones((4, 3), bool))
        scaled_dot_product_attention: attend(*QKV, mask=np.ones((2, 1, 3, 4), bool))
        scaled_dot_product_attention: attend((3, 5), (4, 6), (4, 2))
        scaled_dot_product_attention: attend((3, 5), (4, 5), (3, 2))
        scaled_dot_product_attention: attend((5,), (4, 5), (4, 2))
        scaled_dot_product_attention: attend((2, 3, 5), (3, 4, 5), (2, 4, 5))
        6 heads: attend((2, 6, 3, 5), (2, 4, 4, 5), (2, 4, 4, 5), enable_gqa=True)
        value 3: attend((2, 6, 3, 5), (2, 2, 4, 5), (2, 3, 4, 5), enable_gqa=True)
        heads: attend((3, 5), (4, 5), (4, 5), enable_gqa=True)
        attn_bias: attend(*QKV, attn_bias=ones(4, 3))
        attn_bias: attend(*QKV, attn_bias=ones(2, 1, 3, 4))
        attn_bias: heads(*SIDE_BY_SIDE, attn_bias=ones(2, 3, 3, 1))
        scaled_dot_product_attention: attend(*QKV, dropout_p=1.0)
        multi_head_attention: heads(*SIDE_BY_SIDE, dropout_p=1.0)
        num_heads: heads(*SIDE_BY_SIDE, num_heads=0)
        multi_head_attention: heads(*SIDE_BY_SIDE, num_heads=4)
        query: heads((3, 6), (3, 6), (3, 6))
        query: heads((2, 3, 6), (2, 3, 6), (2, 3, 5))
        query: heads((2, 3, 6), (2, 3, 4), (2, 3, 6))
        query: heads((2, 3, 6), (2, 4, 6), (2, 3, 6))
        size: nn.Linear(0, 3)
        padding_idx: nn.Embedding(3, 3, padding_idx=3)
        Dropout: nn.Dropout(1.0)
        gelu: nn.GELU("sigmoid")(X)
        'gpu': Block().to("gpu")
        xavier_uniform_: nn.init.xavier_uniform_(P)
        xavier_uniform_: nn.init.xavier_uniform_(mg.zeros((0, 3)))
        high - low: nn.init.uniform_(P, 1.0, 0.0)
        scale: nn.init.normal_(P, 0.0, -1.0)
        SGD: optim.SGD([])
        SGD: optim.SGD([{"params": [P]}, {"params": [P]}])
        SGD: optim.SGD([P * 2.0])
        SGD: optim.SGD([{"lr": 1.0}])
        weight_decy: optim.SGD([{"params": [P], "weight_decy": 0}])
        lr: optim.SGD([P], lr=NAN)
        momentum: optim.SGD([P], momentum=-0.1)
        eps: optim.Adam([P], eps=10**400)
        weight_decay: optim.AdamW([P], weight_decay=INF)
        beta: optim.Adam([P], betas=(1.0, 0.9))
        beta: optim.Adam([P], betas=(0.9, NAN))
        many: optim.Adam([P], betas=(0.9, 0.9, 0.9))
        clip_grad_norm_: optim.clip_grad_norm_(P, 0.0)
        clip_grad_norm_: optim.clip_grad_norm_(P, NAN)
        total_steps: optim.CosineLR(optim.SGD([P]), 10, 10)
        min_ratio: optim.CosineLR(optim.SGD([P]), 1, 10, -0.5)
        last_step: optim.LambdaLR(optim.SGD([P]), lambda step: 1.0).load_state_dict({"last_step": -1})
        the rate: optim.LambdaLR(optim.SGD([P]), lambda step: NAN)
        the scale: mg.GradScaler(0.0)
        the scale: mg.GradScaler(1e39)
        grad: func.grad(lambda x: x)(X)
        grad: func.grad(lambda x: 1.0)(X)
        argnums: func.grad(lambda x: x.sum(), 1)(X)
        hvp: func.hvp(lambda d: d["a"].sum(), {"a": P}, {"b": P})
        vjp: func.vjp(lambda x: (x, x), P)[1](P)
        grad: func.vjp(lambda x: x[:2], P)[1](P)
        grad: func.hvp(lambda x: x, X, X)
        functional_call: func.functional_call(Block(), {"bias": P})
        'scale': func.functional_call(Block(), {"scale": 3.0}, X)
        'offset': func.functional_call(Block(), {"offset": X}, X)
        gradcheck: gradcheck(mg.exp, P.detach())
        gradgradcheck: gradgradcheck(mg.exp, [])
        not finite: gradcheck(mg.log, Tensor(np.array([1.0, INF]), requires_grad=True))
        gradcheck: gradcheck(mg.argmax, P)
        ndarray: gradgradcheck(lambda x: x.data, P)
    """,
    TypeError: """
        add: X + None
        add: X + "2"
        mul: object() * X
        mul: X * [None]
        Tensor: V.numpy().copy().__imul__(V)
        Tensor: np.exp(X)
        Tensor: np.exp(X.detach())
        Tensor: np.add.reduce(X.detach())
        Tensor: np.multiply(1, X)
        .detach().numpy(): np.asarray(X)
        .detach().numpy(): np.asarray(X * 2)
        .detach(): pickle.dumps(X)
        .detach(): pickle.dumps(X * 2)
        mul: X * 1j
        where: mg.where(X, X, 0)
        where: mg.where(X.detach(), X, 0)
        where: mg.where(X > 0, X, None)
        masked_fill: X.masked_fill(X, 0)
        flip: X.flip(0, 1)
        sum: mg.sum(X, dim=1)
        round: X.round(0.5)
        astype: X.astype(complex)
        got 0: X.to(0)
        astype: X.astype(None)
        pad: mg.pad(V, ((1, 0),), value=V.sum())
        zeros: mg.zeros("a")
        backward: X.sum().backward("a")
        create_graph: X.sum().backward(create_graph=True)
        grad: mg.grad(X.sum(), 3)
        grad: mg.grad([X.sum(), 3], X)
        .to(dtype=dtype): mg.nn.Linear(2, 2).to(np.float64)
        var: X.var(correction="1")
        sum: mg.sum(X, axis=[0])
        mean: mg.mean(X, axis=[0, 1])
        max: mg.max(X, axis=[])
        min: mg.min(X, axis=[0])
        var: mg.var(X, axis=[0, 1])
        std: mg.std(X, axis=[])
        norm: mg.norm(X, axis=[0])
        any: mg.any(X > 0, axis=[0, 1])
        all: mg.all(X > 0, axis=[])
        argmax: mg.argmax(X, axis=[0])
        argmin: mg.argmin(X, axis=[0, 1])
        logsumexp: mg.logsumexp(X, axis=[])
        softmax: F.softmax(X, axis=[0])
        log_softmax: F.log_softmax(X, axis=[0])
        only floating tensors: Tensor([0, 1], requires_grad=True)
        only floating tensors: Tensor([True]).requires_grad_()
        only floating tensors: Tensor(Tensor([True]), requires_grad=True)
        sort: mg.sort(X, (0, 1))
        norm: mg.norm([3.0, 4.0])
        reshape: X.reshape(2.0, 3)
        concatenate: mg.concatenate(X, X)
        split: X.split([0.5, 1.5])
        pad: mg.pad(X, 1.5)
        repeat: X.repeat([1.0, 2.0], 0)
        tile: X.tile(2.0)
        matmul: X @ 2
        take: X.take([0.5], axis=0)
        gather: mg.gather(X, np.array([[0]]), 0)
        <U4: Tensor("text")
        complex128: Tensor(1j)
        from_numpy: mg.from_numpy(np.zeros(2, complex))
        from_numpy: mg.from_numpy([1])
        from_dlpack: mg.from_dlpack(np.zeros(2, complex))
        minigrad.stack: Tensor([P.sum(), P.sum() * 2])
        minigrad.broadcast_to: mg.full(2, P.sum())
        grad: setattr(P.detach().requires_grad_(), "grad", np.ones(3))
        input 0 is a ndarray: mg.grad(X, [np.ones(1)])
        grad: mg.grad(X, 3)
        threads: mg.parallel.threads(2.5).__enter__()
        threads: mg.parallel.threads(True).__enter__()
        integer: mg.manual_seed(1.0)
        float32: [1, 2][X[0, 0]]
        0-d: iter(X.sum())
        0-d: len(X.sum())
        bitwise_and: X & X
        bitwise_or: X | 1
        bitwise_not: ~X
        dropout_with_mask: F.dropout_with_mask(X.detach(), X.detach(), 0.5)
        dropout_with_mask: F.dropout_with_mask(X, [True], 0.5)
        layer_norm: F.layer_norm(X, None, None, "x")
        rms_norm: F.rms_norm(X, None, "1")
        integer: F.cross_entropy(X, [0, 1], ignore_index=0.5)
        embedding: F.embedding([0.0, 1.0], X)
        one_hot: F.one_hot([0.0])
        cross_entropy: F.cross_entropy(X, [True, False])
        True where a query may attend: attend(*QKV, mask=np.ones((3, 4)))
        True where a query may attend: attend(*QKV, mask=Tensor(np.zeros((3, 4), int)))
        True where a query may attend: attend(*QKV, mask=[[True] * 4] * 3)
        dropped: attend(*QKV, dropped=np.ones((3, 4)))
        attn_bias: attend(*QKV, attn_bias=MASK)
        attn_bias: attend(*QKV, attn_bias=Tensor(np.zeros((3, 4), int)))
        attn_bias: attend(*QKV, attn_bias=[[0.5] * 4] * 3)
        attn_bias: heads(*SIDE_BY_SIDE, attn_bias=np.ones((3, 3), bool))
        size: nn.Linear(3, 2.0)
        size: nn.LayerNorm((3, 4))
        eps: nn.LayerNorm(3, "1")
        Dropout: nn.Dropout("1")
        'size': nn.Linear(7, 2, size=3)
        floating: nn.Parameter(np.array([1]))
        Block.to: Block().to(dtype=np.int64)
        Block.train: Block().train("eval")
        hook: Block().register_forward_hook(3)
        a function, got 3: X.register_hook(3)
        Block.scale: setattr(Block(), "scale", P.detach())
        Block.scale: setattr(Block(), "scale", 1.0)
        Block.offset: setattr(Block(), "offset", np.ones(3))
        ModuleList: setattr(Block(), "parts", [nn.ReLU()])
        ModuleList: setattr(Block(), "parts", (1, nn.ReLU()))
        ModuleList: setattr(Block(), "parts", {"a": nn.ReLU()})
        fresh: Block().register_buffer("fresh", np.ones(1))
        scale: Block().register_buffer("scale", P.detach())
        Module: PAIR.append(max)
        Module: PAIR.__setitem__(0, None)
        Module: nn.Sequential([nn.ReLU()])
        ModuleList: PAIR(1)
        count: Model().load_state_dict({"count": [7]}, strict=False)
        count: Model().load_state_dict({"count": np.ma.masked_array([7], [True])}, strict=False)
        load_tensors: Model().load_state_dict("model.safetensors", strict=False)
        SGD: optim.SGD(P)
        ndarray: optim.SGD([np.ones(2)])
        lr: optim.SGD([P], lr="x")
        momentum: optim.SGD([P], momentum=None)
        eps: optim.Adam([P], eps=1j)
        beta: optim.Adam([P], betas=("x", 0.9))
        warmup_steps: optim.CosineLR(optim.SGD([P]), "x", 10)
        the scale: mg.GradScaler("cuda")
        int64: func.grad(lambda x: x.sum())(Tensor([1, 2]))
        vjp: func.vjp(lambda x: 1.0, X)
        jvp: func.jvp(mg.exp, X, (X,))
        jacobian: func.jacobian(lambda x: (x, x))(X)
        jacobian: func.hessian(lambda d: d["a"].sum())({"a": X})
        checkpoint: func.checkpoint(lambda x: 1.0, X)
        float32: gradcheck(mg.exp, X)
        ndarray: gradgradcheck(mg.exp, [np.ones(2)])
    """,
    IndexError: """
        sum: X.sum(axis=2)
        softmax: F.softmax(X[:0], 2)
        expand_dims: X.expand_dims(4)
        getitem: X[2]
        take: X.take([0, 2], axis=0)
        take: X.take([0], axis=2)
        embedding: F.embedding([[0, 1], [9, -2]], X)
        one_hot: F.one_hot([0, 3], 3)
        sum: mg.sum(X.sum(), axis=1)
        mean: mg.mean(X.sum(), axis=1)
        max: mg.max(X.sum(), axis=1)
        var: mg.var(X.sum(), axis=1)
        logsumexp: mg.logsumexp(X.sum(), axis=1)
        argmax: mg.argmax(X.sum(), axis=1)
        norm: mg.norm(X.sum(), axis=1)
        cumsum: mg.cumsum(X.sum(), axis=1)
        sort: mg.sort(X.sum(), axis=1)
        argsort: mg.argsort(X.sum(), axis=1)
        cross_entropy: F.cross_entropy(X, [0, -1])
        nll_loss: F.nll_loss(X, [0, 3])
        index out of range: PAIR[2]
        index out of range: PAIR.__setitem__(-3, nn.ReLU())
    """,
    OverflowError: """
        sum: X.sum(axis=10**30)
        int64: Tensor([2**63])
    """,
    BufferError: """
        .detach(): np.from_dlpack(X)
    """,
    NotImplementedError: """
        Module: nn.Module()(1)
    """,
    RuntimeError: """
        grad: mg.grad(V.detach().sum(), X)
        backward: V.detach().sum().backward()
        retain_grad: V.detach().retain_grad()
        .detach(): copy.copy(X * 2)
        .detach(): copy.deepcopy(X * 2)
        register_hook: V.detach().register_hook(print)
        .detach(): setattr(X * 2, "requires_grad", False)
        require a gradient: V.detach().clone().copy_(V * 2)
        require a gradient: V.detach().clone().__setitem__(0, V[0])
        broadcast view: mg.broadcast_to(V.detach(), (2, 3)).copy_(np.ones((2, 3)))
        broadcast view: mg.broadcast_to(V.detach(), (2, 3)).__setitem__(0, 9.0)
        read-only memory: mg.from_numpy(np.frombuffer(bytes(8))).copy_([1.0])
        read-only memory: mg.from_numpy(np.frombuffer(bytes(8))).__setitem__(0, 9.0)
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


ON_A_GPU = """
    add             ValueError      X + X.T
    concatenate     ValueError      mg.concatenate([X, X.T])
    take            IndexError      mg.take(X, [0, -5], axis=0)
    sum             IndexError      X.sum().sum(axis=1)
    embedding       IndexError      F.embedding([[0, 1], [9, -2]], X)
    cross_entropy   IndexError      F.cross_entropy(X, [0, 3])
"""


@pytest.mark.parametrize("line", ON_A_GPU.strip().splitlines())
def test_wrong_calls_on_a_gpu_say_the_same(line, gpu):
    """Ids and indices are checked on the host: the GPU itself would wrap them silently."""
    name, kind, call = line.split(maxsplit=2)
    with pytest.raises(eval(kind), match=f"^{name}: "):  # noqa: S307 - of our own writing
        eval(call, globals() | {"X": X.detach().to(gpu)})  # noqa: S307


def test_nothing_is_changed_by_a_wrong_call():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ValueError, match="mul"):
        x * Tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [1, 2]
    assert x.grad is None


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
    assert outer(Tensor([1.0, 2.0]), axis=0).tolist() == [1, 3]
    assert str(inspect.signature(outer)) == "(x, axis=0)"


def test_an_attribute_error_inside_a_forward_stays_one():
    """It is not taken for an operand that is no array."""
    @mg.primitive
    def broken(x):
        return x.nothing_of_the_kind

    broken.gradient(x=lambda g: g)
    with pytest.raises(AttributeError, match=r"broken: .*nothing_of_the_kind"):
        broken(Tensor([1.0]))
