"""Derivatives of functions, to any order, and gradient checkpointing: ``minigrad.func``."""

from minigrad.func.checkpointing import checkpoint
from minigrad.func.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from minigrad.namespace import answer
from minigrad.nn.functional_call import functional_call

__all__ = ["checkpoint", "functional_call", "grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]

answer("minigrad.func")
