"use strict";
// A batch of sentences through the model, forward and backward, with the reader's switches, edit and mistake.
//
// How to use:
//   const run = new BatchRun(parameters, config, pairs, options, item);
//       parameters  a Map: dotted name → Matrix, as the modules store them
//       pairs       [{source, target}]: ids that end in end-of-sentence
//       options     {scaling, masking, edit: null | {path, symbol, head, row, col, value}, broken: null | a key of BREAKAGES}:
//                   the switches and the mistake are those of every attention, the edit is one of `item`
//   run.loss                 the mean cross-entropy over all target tokens
//   run.order                the paths of the places, in the order of the forward
//   run.summary              what the page shows of the whole model: see the Run of session.js; `broken` is the key
//   run.result(path)         the Result of a place (result.js, places/narrow.js) with `item` in its records, and with loss
//   run.parameterGradients   a Map like the parameters: the gradients of the loss
//   run.broken               the mistake, or null where no attention of the model can make it

class BatchRun {
  constructor(parameters, config, pairs, {scaling = true, masking = true, edit = null, broken = null} = {}, item = 0) {
    Object.assign(this, {parameters, config, pairs, item, switches: {scaling, masking}});
    this.count = pairs.reduce((sum, {target}) => sum + target.length, 0);
    this.edit = edit && this.withOffset(edit, broken);
    const mistake = mistakeOf(broken);
    this.problems = new Map();
    const tap = inTurn(tapOfEdit(this.edit, item), tapOfMistake(mistake));
    this.items = pairs.map((_, index) => this.forward(index, tap, {problems: this.problems}));
    for (const {tape, loss} of this.items) { // after the forward of all: a mistake may depend on the whole batch
      tape.backward(loss, new Matrix(1, 1, Float64Array.of(1)));
    }
    this.loss = this.items.reduce((sum, {loss}) => sum + loss.value.data[0], 0);
    this.order = this.items[0].places.map(({path}) => path);
    this.broken = mistake && [...this.problems.values()].some((problem) => this.mistakeIn(problem, mistake)) ? mistake : null;
  }

  get parameterGradients() {
    this.gradients ??= new Map([...this.parameters.keys()].map(
      (name) => [name, addAll(this.items.map(({nodes}) => gradientBy(nodes.get(name))))]));
    return this.gradients;
  }

  /** One item on a tape of its own: {tape, nodes, loss, memory, places}. */
  forward(index, tap, options, memory) {
    const tape = new Tape(tap);
    const nodes = leavesOf(tape, this.parameters);
    const run = new ModelRun(tape, nodes, this.config, {item: index, ...this.switches, ...options});
    return {tape, nodes, ...run.loss(this.pairs[index], this.count, memory)};
  }

  result(path) {
    const at = this.order.indexOf(path);
    const places = this.items.map((item) => item.places[at]);
    const {problem} = places[0];
    return narrowed({
      ...resultOf(places, this.item, {
        edit: this.edit?.path === path ? this.edit : null,
        broken: this.broken && this.mistakeIn(problem, this.broken) ? this.broken : null,
        again: (index, tap) => this.again(path, index, tap),
      }),
      loss: this.loss,
    });
  }

  get summary() {
    const {loss, order, item, pairs, config, broken} = this;
    const P = this.items.map(({places}) => places.at(-1).shared.P), own = this.items[item].places;
    return {
      loss, order, P, broken: broken?.key, kinds: own.map(({kind}) => kind),
      probabilities: P.map((matrix, n) => pairs[n].target.map((id, t) => matrix.at(t, id))),
      predicted: pairs[item].target.map((_, t) => {
        const id = mostProbable(P[item].row(t), config);
        return {id, probability: P[item].at(t, id)};
      }),
      norms: new Map(own.map((place) => [place.path, normsAt(place)])),
    };
  }

  mistakeIn(problem, mistake) {
    return problem.kind === "attention" && mistake.applies(problem);
  }

  /**
   * The forward of an item through one more tap, which moves a tensor of this place: its part of the loss, for finite
   * differences. These must not step over the kink of a relu, where the slope is another one: so every relu keeps the
   * slopes that it had. And what lies in the decoder does not move the memory.
   */
  again(path, index, tap) {
    const {places, memory} = this.items[index];
    const slopes = new Map(this.config.activation !== "relu" ? [] : places.filter(({kind}) => kind === "feed_forward").map(
      ({path: at, shared: {H}}) => [at, new Matrix(H.rows, H.cols, H.data.map(ACTIVATIONS.relu.slope))]));
    const moved = this.forward(index, inTurn(tapOfEdit(this.edit, this.item), tap), {slopes},
      path.startsWith("encoder.") ? undefined : memory).places;
    const {L} = moved.at(-1).shared;
    const {Z, dZ} = places.at(-1).shared;
    const parts = [[makeMatrix(L.rows, 1, () => 1 / this.count), L]];
    let size = innerProduct(...parts[0]) + sizeOfProducts(dZ, Z); // a logit's rounding is one of the loss
    if (this.edit?.symbol === "dY" && index === this.item) {
      // What an edit adds to the gradient of Y is the gradient of this many times the entry of Y.
      const {Y} = (moved.find((place) => place.path === this.edit.path) ?? places[this.order.indexOf(this.edit.path)]).shared;
      const weight = moveEntry(new Matrix(Y.rows, Y.cols), this.edit);
      parts.push([weight, Y]);
      size += sizeOfProducts(weight, Y);
    }
    return {parts, size};
  }

  /** The edit with the difference to the entry as it is without it. */
  withOffset(edit, broken) {
    const before = new BatchRun(this.parameters, this.config, this.pairs, {...this.switches, broken}, this.item);
    const {heads, shared} = before.result(edit.path);
    const matrix = heads[edit.head ?? 0][edit.symbol] ?? shared[edit.symbol];
    return {...edit, offset: edit.value - matrix.at(edit.row, edit.col)};
  }
}

const mistakeOf = (wanted) => BREAKAGES.find(({key}) => key === wanted) ?? null;

/** How large that is which a place gives to the next, and its gradient; the logits of the output. */
function normsAt({kind, shared}) {
  const symbol = kind === "output" ? "Z" : "Y";
  return {value: normOf(shared[symbol]), gradient: normOf(shared[`d${symbol}`])};
}
