"""Every tensor inside a small model and its gradient, by the page's places and symbols, as the engine computes them.

And what the tests ask of the page's mathematics, to compare with it.
"""

from collections import defaultdict

import numpy as np

from minigrad import Tensor, tapping

from tests.transformer.tiny import LABELS, PAD, SOURCE, tiny_model
from transformer.explore.data import encoded

# What a page can meet, in three models: each option has another value in one of them.
CONFIGURATIONS = {
    "pre": {"activation": "relu", "num_encoder_layers": 2, "num_decoder_layers": 2},
    "post": {"norm": "post", "activation": "gelu", "tie_output": True, "share_embeddings": True, "layer_norm_eps": 1e-3,
             "sinusoid_layout": "halves", "first_position": 1, "num_encoder_layers": 2},
    "pre, learned": {"activation": "gelu_tanh", "positions": "learned", "bias": False, "norm_bias": False,
                     "output_bias": True, "num_decoder_layers": 2},
    "post, normed": {"norm": "post", "final_norm": True, "activation": "silu", "num_encoder_layers": 0,
                     "tie_output": True, "norm_bias": False},
    "pre, no decoder layers": {"final_norm": False, "num_decoder_layers": 0, "share_embeddings": True},
    "float16, many tokens": {"vocabulary": 200, "output_bias": True},  # more tokens than the page shows at once
}
# Symbols by the name of a tap, and by the end of a module's name of what goes into it and comes out of it. The place is
# that module, or after "^" the one in which it runs, or the output.
TAPS = {"query_input": "Xq", "key_input": "Xk", "value_input": "Xv", "queries": "Q", "keys": "K", "values": "V",
        "scores": "R", "scaled": "S", "masked": "Sm", "weights": "A", "context": "O", "concatenated": "C",
        "output": "Y", "normalized": "Xh"}
INTO = {"norm": "X", "feed_forward": "X", "outer": "^F", "dropout": "^U"}
OUT_OF = {"norm": "Y", "feed_forward": "Y", "embedding": "Y", "inner": "^H", "table": "^E", "positions": "^P",
          "decoder": "X", "": "Z"}

BREAKAGES = ["batch", "rowsum", "transpose", "mask"]

# What the tests ask of the scripts: for every tensor, how far the worst of its written sums is from the cell, in
# proportion to the largest cell or term (of a gradient that is 0 both have the rounding errors of terms that cancel);
# and from what it says: terms add up to the sum, and are the products of their factors, which are entries of the
# tensors they name; the sum that stands aside is that of a factor.
ASKING = """
const OF_PARTS = {
  difference: ([a, b]) => a - b, exponential: ([a, b]) => Math.exp(a - b), reciprocal: ([a]) => 1 / a,
  root: ([a]) => 1 / Math.sqrt(a), "negative logarithm": ([a]) => -Math.log(a),
  "logarithm of 1 +": ([a]) => Math.log1p(a),
};
const total = (list, of) => list.reduce((sum, one) => sum + of(one), 0);

function faultOfSum(result, head, {terms, aside, sum}) {
  const entryOf = ({symbol, i, j, item, head: other}) => {
    const of = item === undefined ? result : result.items[item];
    return (of.heads[other ?? head][symbol] ?? of.shared[symbol]).at(i, j);
  };
  const faultOf = (factor) => {
    const {kind, of, value, symbol, name} = factor;
    if (kind === undefined) return symbol && value !== entryOf(factor) ? Infinity : 0;
    const made = kind !== "function" ? OF_PARTS[kind](of.map((inner) => inner.value))
      : ACTIVATIONS[name.replace("′", "")][name.endsWith("′") ? "slope" : "value"](of[0].value);
    return Math.abs(value - made) + total(of, faultOf);
  };
  const faultOfTerm = ({factors, product}) => total(factors, faultOf)
    + Math.abs(product - factors.reduce((product, {value}) => product * value, 1));
  const written = (parts, whole) => total(parts, faultOfTerm)
    + (parts.length > 0 ? Math.abs(whole - total(parts, ({product}) => product)) : 0);
  if (!aside) return written(terms, sum);
  const factors = terms.flatMap(({factors}) => factors).flatMap((factor) => [factor, ...factor.of ?? []]);
  const stands = factors.some(({value}) => Math.abs(value - aside.sum) <= 1e-14 * Math.max(1, Math.abs(value)));
  return written(terms, sum) + written(aside.terms, aside.sum) + (stands ? 0 : Infinity);
}

const writtenSums = (result) => result.heads.flatMap((_, head) => (
  Object.keys(kindOfResult(result).tensors).flatMap((symbol) => sumsOfTensor(result, head, symbol))));

function sumsOfTensor(result, head, symbol) {
  const matrix = tensorAt(result, head, symbol);
  if (matrix === null) return [];
  let [apart, size, fault] = [0, 0, 0];
  for (let n = 0; n < matrix.data.length; n++) {
    const cell = explainCell(result, head, symbol, Math.floor(n / matrix.cols), n % matrix.cols);
    const value = matrix.data[n], sizes = [value, ...cell.terms.map(({product}) => product)];
    if (cell.sum !== value) apart = Math.max(apart, Math.abs(cell.sum - value)); // −∞ is −∞
    size = Math.max(size, ...sizes.filter(Number.isFinite).map(Math.abs));
    fault = Math.max(fault, faultOfSum(result, head, cell));
  }
  return [[symbol, apart / (size || 1), fault]];
}
"""


def sentences():
    """The batch, item by item and without padding."""
    return [([int(i) for i in source if i != PAD], [int(i) for i in target if i != PAD])
            for source, target in zip(SOURCE, LABELS, strict=True)]


def model_of(name):
    """A model whose norms, biases and scores are far from their first values."""
    model = tiny_model(**CONFIGURATIONS[name])
    if name.startswith("float16"):
        for parameter in model.parameters():
            parameter.copy_(parameter.numpy().astype(np.float16))
    return model


def as_data(model):
    """The model as a page has it."""
    parameters = {name: encoded(parameter) for name, parameter in model.named_parameters()}
    return {"config": vars(model.config), "parameters": parameters}


class Run:
    """One sentence through the model, its tensors kept by place and symbol.

    Args:
        count: the tokens of all targets, by which the loss is divided.
        scaling, masking: False: no attention has it.
        edit: one entry that gets another value, by adding a constant; of an attention's dY: to what arrives at Y.
    """

    def __init__(self, model, source, target, count, scaling=True, masking=True, edit=None):
        self.edit = edit or {}
        self.kept, self.running = {}, [""]  # paths of modules, the innermost last
        instead = {**({} if scaling else {"S": "R"}), **({} if masking else {"Sm": "S"})}

        def visit(name, tensor):
            if symbol := TAPS.get(name):
                place = self.running[-1]
                return self.keep(place, symbol, self.kept.get((place, instead.get(symbol)), tensor))
            return None

        def enter(path, args):
            kept = self.at_end(INTO, path, args)
            self.running.append(path)
            return kept

        def leave(path, output):
            self.running.pop()
            return self.at_end(OUT_OF, path, (output,))[0]

        handles = [handle for path, module in model.named_modules() for handle in (
            module.register_forward_pre_hook(lambda _, args, path=path: enter(path, args)),
            module.register_forward_hook(lambda _, __, output, path=path: leave(path, output)))]
        with tapping(visit):
            loss = model.loss([source], [target], reduction="sum") / count
        for handle in handles:
            handle.remove()
        self.loss = loss.item()
        if self.edit.get("symbol") == "dY":
            loss = loss + self.edit["offset"] * self.kept[edit["path"], "Y"][0, edit["row"], edit["col"]]
        loss.backward()

    def at_end(self, symbols, path, tensors):
        """What goes into a module, or comes out of it: the first is kept, if it has a symbol."""
        around, symbol = self.running[-1], symbols.get(path.rpartition(".")[2])
        if not symbol or (symbol == "^U" and not around.endswith("residual")):
            return tensors
        place = "output" if path in ("", "decoder") else around if symbol[0] == "^" else path
        return (self.keep(place, symbol.removeprefix("^"), tensors[0]), *tensors[1:])

    def keep(self, place, symbol, tensor):
        """A node, whose gradient is what comes back on this way."""
        offset, edit = np.zeros(tensor.shape), self.edit
        if (place, symbol) == (edit.get("path"), edit.get("symbol")):
            at = 0, *([edit["head"]] if tensor.ndim == 4 else []), edit["row"], edit["col"]
            offset[at] = edit["value"] - tensor.numpy()[at]
        node = tensor + Tensor(offset)
        if node.requires_grad:
            node.retain_grad()
        self.kept[place, symbol] = node
        return node

    def matrices(self):
        """By place and symbol, a gradient's with "d" before it: of an attention's heads, or the one that it has."""
        found = defaultdict(dict)
        for (place, symbol), node in self.kept.items():
            matrices = [node.numpy()]
            if node.requires_grad:
                # What does not reach the loss, as an encoder that no decoder reads, has no gradient in the engine.
                matrices.append(np.zeros(node.shape) if node.grad is None else node.grad.numpy())
            for name, matrix in zip((symbol, f"d{symbol}"), matrices, strict=False):
                found[place][name] = matrix.reshape(-1, *node.shape[-2:])
        return found


def steps_of(model, item=0, edit=None, **options):
    """The loss of the batch, the matrices of each sentence, and the gradient of every parameter.

    An edit is one of `item`; the other options are those of `Run`.
    """
    batch = sentences()
    count = sum(len(target) for _, target in batch)
    model.zero_grad()
    runs = [Run(model, source, target, count, edit=edit if n == item else None, **options)
            for n, (source, target) in enumerate(batch)]
    gradients = {name: np.zeros(parameter.shape) if parameter.grad is None else np.array(parameter.grad.numpy())
                 for name, parameter in model.named_parameters()}
    return sum(run.loss for run in runs), [run.matrices() for run in runs], gradients


def assert_same(found, expected, what, tolerance=1e-9):
    """Two matrices, equal up to `tolerance` in proportion to the largest entry."""
    found = np.array(found, dtype=float)
    assert found.shape == expected.shape, what
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    # Of a gradient that is 0 both have the rounding errors of terms near 1.
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(tolerance * largest, 1e-13), err_msg=what)
