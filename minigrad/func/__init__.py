"""Derivatives of functions, to any order, and gradient checkpointing: ``minigrad.func``."""

from minigrad.func.checkpointing import checkpoint
from minigrad.func.modules import functional_call
from minigrad.func.transforms import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp

__all__ = ["checkpoint", "functional_call", "grad", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"]
