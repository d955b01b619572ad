"use strict";
// What a feed-forward layer does to each number between its two projections, and its slope.
//
// How to use:
//   ACTIVATIONS.gelu.value(x), ACTIVATIONS.gelu.slope(x)     by the names of the configuration: relu, gelu, gelu_tanh, silu
//   normalBelow(x) -> Φ(x), how likely a normally distributed number is below x; good to 1e-15

const normalDensity = (x) => Math.exp(-x * x / 2) / Math.sqrt(2 * Math.PI); // φ(x)

/** Φ(x) = ½ + φ(x) (x + x³/3 + x⁵/(3·5) + x⁷/(3·5·7) + …) (Marsaglia 2004); far out Laplace's continued fraction. */
function normalBelow(x) {
  if (x > 4) return 1 - normalBelow(-x);
  if (x < -4) {
    // Φ(−y) = φ(y) / (y + 1/(y + 2/(y + 3/(y + …)))), from the inside outwards; for y > 4 this is deep enough
    let fraction = -x;
    for (let n = 60; n > 0; n--) fraction = -x + n / fraction;
    return normalDensity(x) / fraction;
  }
  let [term, sum] = [x, x];
  for (let n = 3; Math.abs(term) > 1e-17 * Math.abs(sum); n += 2) {
    term *= x * x / n;
    sum += term;
  }
  return 0.5 + normalDensity(x) * sum;
}

const logistic = (x) => 1 / (1 + Math.exp(-x)); // σ(x)

// tanh(√(2/π) (x + 0.044715 x³)), and the slope of what is inside
const TANH_FACTOR = Math.sqrt(2 / Math.PI);
const tanhOfGelu = (x) => Math.tanh(TANH_FACTOR * (x + 0.044715 * x ** 3));
const slopeInTanh = (x) => TANH_FACTOR * (1 + 3 * 0.044715 * x * x);

const ACTIVATIONS = {
  // forward: y = max(x, 0)                  so here: dx = dy where x > 0, 0 elsewhere
  relu: {
    value: (x) => (x > 0 ? x : 0),
    slope: (x) => (x > 0 ? 1 : 0),
  },
  // forward: y = x Φ(x)                     so here: dx = dy (Φ(x) + x φ(x))
  gelu: {
    value: (x) => x * normalBelow(x),
    slope: (x) => normalBelow(x) + x * normalDensity(x),
  },
  // forward: y = ½ x (1 + t), t = tanh(u)   so here: dx = dy (½ (1 + t) + ½ x (1 − t²) u′)
  gelu_tanh: {
    value: (x) => 0.5 * x * (1 + tanhOfGelu(x)),
    slope: (x) => 0.5 * (1 + tanhOfGelu(x)) + 0.5 * x * (1 - tanhOfGelu(x) ** 2) * slopeInTanh(x),
  },
  // forward: y = x σ(x)                     so here: dx = dy (σ(x) + x σ(x) (1 − σ(x)))
  silu: {
    value: (x) => x * logistic(x),
    slope: (x) => logistic(x) + x * logistic(x) * (1 - logistic(x)),
  },
};
