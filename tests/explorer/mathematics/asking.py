"""What the tests ask of the page's mathematics, and how."""


import numpy as np

BREAKAGES = ["batch", "rowsum", "transpose", "mask"]

# What the tests ask of the scripts, beside what they offer: whole matrices at once.
ASKING = """
const bySymbol = (result, make) => result.heads.map((_, head) => Object.fromEntries(
  Object.keys(kindOfResult(result).tensors).filter((symbol) => tensorAt(result, head, symbol) !== null)
    .map((symbol) => [symbol, make(symbol, head)])));
const allCells = (result, read) => bySymbol(result, (symbol, head) => {
  const {rows, cols} = tensorAt(result, head, symbol);
  return makeMatrix(rows, cols, (i, j) => read(explainCell(result, head, symbol, i, j), head)).toNested();
});

// How far the worst of all written sums is from what it says: terms add up to the sum, and are the products of their
// factors, which are entries of the tensors they name; the sum that stands aside is that of a factor.
const faultOfSums = (result) => {
  const ofParts = {
    difference: ([a, b]) => a - b, exponential: ([a, b]) => Math.exp(a - b), reciprocal: ([a]) => 1 / a,
    root: ([a]) => 1 / Math.sqrt(a), "negative logarithm": ([a]) => -Math.log(a),
    "logarithm of 1 +": ([a]) => Math.log1p(a),
  };
  const faultOfSum = (parts, whole) => (parts.length === 0 ? 0
    : Math.abs(whole - parts.reduce((total, {product}) => total + product, 0)));
  return Math.max(...allCells(result, ({terms, aside, sum}, head) => {
    const entryOf = ({symbol, i, j, item, head: other}) => {
      const of = item === undefined ? result : result.items[item];
      return (of.heads[other ?? head][symbol] ?? of.shared[symbol]).at(i, j);
    };
    const faultOf = (factor) => {
      if (factor.kind === undefined) return factor.symbol && factor.value !== entryOf(factor) ? Infinity : 0;
      const parts = factor.of.reduce((fault, inner) => fault + faultOf(inner), 0);
      if (factor.kind === "function") {
        const {value, slope} = ACTIVATIONS[factor.name.replace("′", "")];
        return Math.abs(factor.value - (factor.name.endsWith("′") ? slope : value)(factor.of[0].value)) + parts;
      }
      return Math.abs(factor.value - ofParts[factor.kind](factor.of.map((inner) => inner.value))) + parts;
    };
    const faults = [...terms, ...(aside ? aside.terms : [])].map(({factors, product}) => (
      Math.abs(product - factors.reduce((total, {value}) => total * value, 1))
      + factors.reduce((fault, factor) => fault + faultOf(factor), 0)));
    const values = terms.flatMap(({factors}) => factors).flatMap(
      ({value, of = []}) => [value, ...of.map((inner) => inner.value)]);
    const standsFor = (value) => Math.abs(value - aside.sum) <= 1e-14 * Math.max(1, Math.abs(value));
    const faultOfAside = aside ? faultOfSum(aside.terms, aside.sum) + (values.some(standsFor) ? 0 : Infinity) : 0;
    return Math.max(0, ...faults) + faultOfSum(terms, sum) + faultOfAside;
  }).flatMap((matrices) => Object.values(matrices).flat(2)));
};
"""


def assert_same(found, expected, what, tolerance=1e-9):
    """Two matrices, equal up to `tolerance` in proportion to the largest entry."""
    found = np.array(found, dtype=float)
    assert found.shape == expected.shape, what
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    # Of a gradient that is 0 both have the rounding errors of terms near 1.
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(tolerance * largest, 1e-13), err_msg=what)
