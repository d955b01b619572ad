// One step of a training: each parameter moves against its gradient, by a rule.
//
// How to use:
//   OPTIMIZERS.adam(parameters, gradients, rate, memory) -> {parameters, memory}
//       parameters, gradients   Maps of matrices by name; a new Map is returned, and none of the given is changed
//       rate                    the learning rate, η below
//       memory                  what the rule keeps from one step to the next; null before the first

const BETA1 = 0.9, BETA2 = 0.999, ADAM_EPSILON = 1e-8; // PyTorch's defaults

const OPTIMIZERS = {
  /** w ← w − η·g, and nothing is kept. */
  sgd(parameters, gradients, rate) {
    const moved = copyOf(parameters);
    for (const [name, {data: w}] of moved) {
      const g = gradients.get(name).data;
      for (let n = 0; n < w.length; n++) w[n] -= rate * g[n];
    }
    return {parameters: moved, memory: null};
  },

  /**
   * m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  w ← w − η·m̂/(√v̂ + ε)  with  m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ).
   * Means of the gradient g and of its square, which forget. They begin with zeros, so after t steps they are too small
   * by the factors that m̂ and v̂ divide by (Kingma and Ba 2015).
   */
  adam(parameters, gradients, rate, memory) {
    const moved = copyOf(parameters);
    const {t: before, means: oldMeans, squares: oldSquares} = memory ?? {
      t: 0, means: zerosFor(parameters), squares: zerosFor(parameters)};
    const [t, means, squares] = [before + 1, copyOf(oldMeans), copyOf(oldSquares)];
    const small1 = 1 - BETA1 ** t, small2 = 1 - BETA2 ** t;
    for (const [name, {data: w}] of moved) {
      const [g, m, v] = [gradients.get(name).data, means.get(name).data, squares.get(name).data];
      for (let n = 0; n < w.length; n++) {
        m[n] = BETA1 * m[n] + (1 - BETA1) * g[n];
        v[n] = BETA2 * v[n] + (1 - BETA2) * g[n] * g[n];
        w[n] -= (rate * (m[n] / small1)) / (Math.sqrt(v[n] / small2) + ADAM_EPSILON);
      }
    }
    return {parameters: moved, memory: {t, means, squares}};
  },
};

const ofEach = (matrices, make) => new Map(Array.from(matrices, ([name, matrix]) => [name, make(matrix)]));
const copyOf = (matrices) => ofEach(matrices, ({rows, cols, data}) => new Matrix(rows, cols, data.slice()));
const zerosFor = (matrices) => ofEach(matrices, ({rows, cols}) => new Matrix(rows, cols));
