"""Rows for the activations, with and without their options; none has an input on a kink."""

from minigrad import functional as F

from tests.minigrad.functional.case import Case

SHAPE = ((3, 4),)

ACTIVATIONS = [
    Case("softplus", F.softplus, SHAPE),
    Case("softplus, sharper, with a low threshold", lambda x: F.softplus(x, beta=2.5, threshold=1.5), SHAPE),
    Case("logsigmoid", F.logsigmoid, SHAPE),
    Case("silu", F.silu, SHAPE),
    Case("mish", F.mish, SHAPE),
    Case("elu", F.elu, SHAPE),
    Case("elu of alpha", lambda x: F.elu(x, 0.5), SHAPE),
    Case("selu", F.selu, SHAPE),
    Case("celu", F.celu, SHAPE),
    Case("celu of alpha", lambda x: F.celu(x, alpha=2.0), SHAPE),
    Case("leaky_relu", F.leaky_relu, SHAPE),
    Case("leaky_relu of slope", lambda x: F.leaky_relu(x, -0.2), SHAPE),
    Case("hardtanh", F.hardtanh, SHAPE),
    Case("hardtanh of bounds", lambda x: F.hardtanh(x, -0.2, 0.7), SHAPE),
    Case("relu6", lambda x: F.relu6(4 * x), SHAPE),
    Case("hardsigmoid", lambda x: F.hardsigmoid(3 * x), SHAPE),
    Case("softsign", F.softsign, SHAPE),
    Case("silu of a number", F.silu, ((),)),
    Case("softplus of an empty batch", F.softplus, ((0, 4),)),
    Case("elu of an empty batch", F.elu, ((2, 0),)),
]
