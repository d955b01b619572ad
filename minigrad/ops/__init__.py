"""The operations: plain functions on arrays or tensors, each with its gradient rule beside it.

Given arrays they return arrays, given tensors they return tensors (and record, when a gradient is needed). An operation
is public by being there: `OPERATIONS` has every primitive, and every `public` function, of these modules whose name has
no underscore in front. `minigrad`, the methods of Tensor, and the rows of the tests are made of it.
"""

from typing import TYPE_CHECKING, Any

from minigrad.ops.elementwise import *
from minigrad.ops.indexing import *
from minigrad.ops.linalg import *
from minigrad.ops.reduction import *
from minigrad.ops.shape import *

OPERATIONS = {name: value for name, value in globals().items() if hasattr(value, "precision")}

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The operations, which have no types."""

else:
    __all__ = list(OPERATIONS)
