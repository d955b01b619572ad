"use strict";
// Facts that hold for the gradients of every place of a kind, whatever its weights: checks that cost nothing.
//
// How to use:
//   identities(result, head) -> [{key, statement, residual, scale, holds}], those that say something about this head
//
// The residual is what should be 0, and `scale` the size of what cancels in it: it holds if it is rounding beside that.
// A constant factor, such as a division by the batch size, is seen by none of them: that takes a finite difference.

const ROUNDING_OF_SUMS = 1e-12;

function identities(result, head) {
  return kindOfResult(result).identities.flatMap((identity) => {
    const found = identity(result, head);
    return found === null ? [] : [{...found, holds: found.residual <= ROUNDING_OF_SUMS * found.scale}];
  });
}
