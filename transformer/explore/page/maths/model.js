"use strict";
// The whole model on a tape: encoder, decoder, logits and loss (Vaswani et al. 2017, figure 1). Forward only; the tape has
// the backward.
//
// How to use:
//   const nodes = leavesOf(tape, parameters);                    parameters: a Map, dotted name → Matrix, as stored
//   const run = new ModelRun(tape, nodes, config, {item, scaling, masking});     one item of the batch
//   const {loss, memory, places} = run.loss({source, target}, count);            loss: the node of the item's part, ΣL/count;
//                                                                places: in the order of the forward, each with its path
//
//   run.encode(source) -> the memory's node; run.decode(read, memory, start) -> hidden; run.logits(hidden)    step by step
//
// `source` and `target` are lists of ids that end in end-of-sentence; the decoder reads begin-of-sentence and the target but
// its last. There is no padding: a batch runs item by item. `count` is the number of target tokens of the whole batch.
//
// The options of one run: `scaling` false: scores are not divided by √d_k; `masking` false: the decoder sees the future, in
// every attention of the model. `problems` collects, by path, what the places of all items have in common; `slopes` has,
// by path, those of the activations that are held (runFeedForward).

const leavesOf = (tape, parameters) => new Map([...parameters].map(([name, matrix]) => [name, tape.leaf(matrix, true)]));

class ModelRun {
  constructor(tape, nodes, config, {item = 0, scaling = true, masking = true, problems = new Map(), slopes = new Map()} = {}) {
    Object.assign(this, {tape, nodes, config, item, scaling, masking, problems, slopes});
    this.places = [];
    this.made = new Map();
  }

  loss({source, target}, count = target.length, memory = this.encode(source)) {
    const hidden = this.decode([this.config.bos_id, ...target.slice(0, -1)], memory);
    const output = {X: hidden, ...this.projection(), targets: target};
    const loss = runOutput(this.tape, this.place("output", "output", {count}), output, count);
    return {loss, memory, places: this.places};
  }

  encode(source) {
    let x = this.embedding("encoder", source); // (S, D)
    for (let n = 0; n < this.config.num_encoder_layers; n++) {
      const layer = `encoder.layers.${n}`;
      x = this.residual(`${layer}.self_attention`, x, (y, path) => this.attention(path, y, null, false));
      x = this.residual(`${layer}.feed_forward`, x, (y, path) => this.feedForward(path, y));
    }
    return this.finalNorm("encoder", x);
  }

  /** With `past` the token at position `start` alone: the attentions keep those before. */
  decode(read, memory, start = 0) {
    let x = this.embedding("decoder", read, start); // (T, D)
    for (let n = 0; n < this.config.num_decoder_layers; n++) {
      const layer = `decoder.layers.${n}`;
      x = this.residual(`${layer}.self_attention`, x, (y, path) => this.attention(path, y, null, true));
      x = this.residual(`${layer}.cross_attention`, x, (y, path) => this.attention(path, y, memory, false));
      x = this.residual(`${layer}.feed_forward`, x, (y, path) => this.feedForward(path, y));
    }
    return this.finalNorm("decoder", x);
  }

  logits(hidden) {
    const {W, b} = this.projection();
    return this.tape.affine(hidden, W, b); // (T, V)
  }

  // ------------------------------------------------------------------ the parts

  /** pre-norm: x + sublayer(norm(x)), post-norm: norm(x + sublayer(x)) */
  residual(path, x, sublayer) {
    const around = `${path}_residual`;
    const sum = (u) => runResidual(this.tape, this.place(around, "residual"), {X: x, U: u});
    if (this.config.norm === "pre") return sum(sublayer(this.norm(`${around}.norm`, x), path));
    return this.norm(`${around}.norm`, sum(sublayer(x, path)));
  }

  finalNorm(stack, x) {
    const hasNorm = this.config.final_norm ?? this.config.norm === "pre";
    return hasNorm ? this.norm(`${stack}.norm`, x) : x;
  }

  norm(path, x) {
    const eps = this.config.layer_norm_eps;
    return runNorm(this.tape, this.place(path, "norm", {eps}),
      {X: x, w: this.parameter(`${path}.weight`), b: this.parameter(`${path}.bias`)}, eps);
  }

  /** `memory` null: self-attention. Of a causal one a query sees no key behind its own position. */
  attention(path, x, memory, causal) {
    const {num_heads: numHeads, d_model: width} = this.config;
    const [queries, keys] = [x.value.rows, (memory ?? x).value.rows];
    const mask = causal && this.masking && !this.past ? makeMatrix(queries, keys, (i, j) => (j <= i ? 1 : 0)) : null;
    const place = this.place(path, "attention", {
      numHeads, scale: this.scaling ? 1 / Math.sqrt(width / numHeads) : 1, selfAttention: memory === null,
      past: this.past && [],
    });
    place.problem.items[this.item] = {X: x.value, M: memory && memory.value, mask};
    return runAttention(this.tape, place, {X: x, M: memory, ...this.ofHeads(path)});
  }

  /** The weights of an attention; each head has its columns of those of Q, K and V. */
  ofHeads(path) {
    return this.once(path, () => {
      const [query, key, value, output] = ["query", "key", "value", "output"].map((name) => this.linear(`${path}.${name}`));
      const {num_heads: count} = this.config;
      const cut = (node) => (node ? this.tape.split(node, count) : Array(count).fill(null));
      const [WQ, bQ, WK, bK, WV, bV] = [query, key, value].flatMap(({W, b}) => [cut(W), cut(b)]);
      const heads = WQ.map((_, n) => ({WQ: WQ[n], bQ: bQ[n], WK: WK[n], bK: bK[n], WV: WV[n], bV: bV[n]}));
      return {heads, WO: output.W, bO: output.b};
    });
  }

  feedForward(path, x) {
    const [inner, outer] = [this.linear(`${path}.inner`), this.linear(`${path}.outer`)];
    const {activation} = this.config;
    return runFeedForward(this.tape, this.place(path, "feed_forward", {activation}),
      {X: x, W1: inner.W, b1: inner.b, W2: outer.W, b2: outer.b}, activation, this.slopes.get(path));
  }

  embedding(stack, ids, start = 0) {
    const {d_model: width, positions, sinusoid_layout: layout, first_position: first} = this.config;
    return runEmbedding(this.tape, this.place(`${stack}.embedding`, "embedding", {embeddingScale: Math.sqrt(width)}), {
      ids, start, W: this.table(stack),
      positions: positions === "learned"
        ? this.parameter(`${stack}.embedding.positions.table`) : sinusoid(ids.length, width, layout, first + start),
    });
  }

  /** Both stacks have one table where the two languages share their vocabulary. */
  table(stack) {
    return this.parameter(`${this.config.share_embeddings ? "encoder" : stack}.embedding.table.weight`);
  }

  /** From the hidden features to the vocabulary; tied, the rows of the target's table. */
  projection() {
    if (this.config.tie_output) return {W: this.tape.transpose(this.table("decoder")), b: null};
    return this.linear("projection");
  }

  // ------------------------------------------------------------------ parameters and places

  parameter(name) {
    return this.nodes.get(name) ?? null;
  }

  /** The module has the weight as (out, in); here it stands right of what it multiplies. */
  linear(path) {
    return this.once(path, () => ({
      W: this.tape.transpose(this.parameter(`${path}.weight`)), b: this.parameter(`${path}.bias`)}));
  }

  /** What is made of the parameters alone, for a model that writes token by token. */
  once(path, make) {
    if (!this.made.has(path)) this.made.set(path, make());
    return this.made.get(path);
  }

  /** The place of this path, and in its problem what holds for all items. */
  place(path, kind, facts = {}) {
    if (!this.problems.has(path)) this.problems.set(path, {path, kind, items: [], ...facts});
    const place = placeOf(path, kind, this.item, this.problems.get(path));
    this.places.push(place);
    return place;
  }
}
