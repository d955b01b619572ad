// A session: the model, the sentences that it reads, and the steps that its weights have taken. No document.
//
// How to use:
//   const session = new Session(JSON.parse(text, decoded).model)
//   session.items -> [{source, target, written, version, ids: {source, target}}…]   the sentences of the batch; `written`:
//                                          whether the model wrote the target, with the weights of `version`; ids with
//                                          end-of-sentence
//   session.setTexts({source, target}, item)     target null: the model writes it, greedily; TextError for texts that no
//                                          model could read, and nothing changes then
//   session.unknown(item) -> {source: [piece…], target: [piece…]}   what the vocabularies do not have
//   session.tokens(item) -> {source: [label…], target: [what the decoder reads, begin first…], next: [what it writes…]}
//   session.greedy(source) -> {ids, text}        without the end
//   session.run({item, options}) -> Run          forward and backward, options as those of BatchRun; kept
//       Run  loss                                the mean over the target tokens of all items
//            places.get(path) -> Result                      as the page shows it: see places/narrow.js
//            order: [path…], kinds: [kind…]                  in the order of the forward
//            parameterGradients: Map name → Matrix
//            broken: the mistake of the options, or null where the model cannot make it
//            P: [Matrix of each item]                        the probabilities of the whole vocabulary
//            probabilities: [[p of each target token] of each item]
//            predicted: [{id, token, probability}…]          of the item, what the model would write instead of each
//            norms: Map path → {value, gradient}             of what the place gives to the next
//   session.step({rule: "sgd" | "adam", rate, item}, options)      against the gradients of run({item, options})
//   session.undo()                               back to the weights before, to the last bit; false if there are none
//   session.reset()                              to the weights of the page
//   session.history -> [{loss, probabilities, P, step, version}…]   as of a Run, before the first step and after each; step: {rule, rate, broken} that led there, or null.
//                                                It begins anew where a step begins at another loss: with other texts, say
//   session.fork()                               a session that stands where this one does, and goes its own way

/** A text that the model cannot read; the message says why, and `side` which it is, "source" or "target". */
class TextError extends Error {
  constructor(side, problem) {
    super(problem);
    this.side = side;
  }
}

const MOST_RUNS = 4; //   that are kept: more than a view needs
const MOST_UNDONE = 30; // steps that can be taken back: each keeps all weights, and those of Adam two means beside;
const MOST_KEPT = 2e7; //  so of a large model fewer, with no more weights in all

class Session {
  constructor({config, parameters, tokenizers, texts, ids, written}) {
    Object.assign(this, {config, compute: HERE}); // see remote.js
    this.parameters = new Map(Object.entries(parameters));
    this.size = [...this.parameters.values()].reduce((sum, {data}) => sum + data.length, 0);
    this.tokenizers = {source: tokenizerOf(tokenizers.source), target: tokenizerOf(tokenizers.target)};
    this.opening = texts.source.map((source, item) => ({
      source, target: texts.target[item], written, version: 0, ids: {source: ids.source[item], target: ids.target[item]},
    }));
    this.items = [...this.opening];
    this.first = this.parameters;
    this.version = 0; // of the parameters; a version that comes back has its number again
    this.newest = 0;
    this.memory = null; // what the latest step keeps for the next; SGD keeps nothing, and Adam then begins anew
    this.past = [];
    this.history = [];
    this.runs = new Map();
  }

  // ------------------------------------------------------------------ texts

  setTexts({source, target}, item = 0) {
    const next = this.itemOf(source, target, item);
    if (JSON.stringify(next.ids) !== JSON.stringify(this.items[item].ids)) this.history = []; // it is of these sentences
    this.items[item] = next;
  }

  itemOf(source, target, item) {
    const opening = this.opening[item];
    if (source === opening.source && target === opening.target) return opening; // with the tokens that it was made of
    const ids = {source: this.idsOf("source", source)};
    if (target === null) {
      // What never ends is cut off where the model has no position left for the end.
      ids.target = [...this.greedy(source).ids.slice(0, this.config.max_length - 1), this.config.eos_id];
      return {source, target: this.tokenizers.target.decode(ids.target), written: true, version: this.version, ids};
    }
    ids.target = this.idsOf("target", target);
    return {source, target, written: false, ids};
  }

  /** The ids of a text with end-of-sentence; TextError if there are none, or more than the model has positions. */
  idsOf(side, text) {
    if (isBlank(text)) {
      throw new TextError(side, side === "source" ? "The source is empty; type a text for the model to read."
        : "The target is empty; type one, or let the model write it.");
    }
    const ids = [...this.tokenizers[side].encode(text), this.config.eos_id];
    const most = this.config.max_length;
    if (ids.length > most) {
      throw new TextError(side, `The ${side} has ${ids.length} tokens with end-of-sentence, more than the model's `
        + `${most} positions; shorten it.`);
    }
    return ids;
  }

  unknown(item = 0) {
    const {source, target, written} = this.items[item];
    return {
      source: this.tokenizers.source.unknown(source),
      target: written ? [] : this.tokenizers.target.unknown(target),
    };
  }

  tokens(item = 0) {
    const {ids} = this.items[item], {source, target} = this.tokenizers;
    return {source: source.tokens(ids.source), target: target.tokens(this.read(item)), next: target.tokens(ids.target)};
  }

  /** What the decoder reads: the target one place later, after begin-of-sentence. */
  read(item) {
    return [this.config.bos_id, ...this.items[item].ids.target.slice(0, -1)];
  }

  greedy(source) {
    const ids = this.compute.write(this.parameters, this.config, this.idsOf("source", source));
    return {ids, text: this.tokenizers.target.decode(ids)};
  }

  // ------------------------------------------------------------------ forward and backward

  /** Of all sentences. */
  get ids() {
    return this.items.map(({ids}) => ids);
  }

  run({item = 0, options = {}} = {}) {
    const key = JSON.stringify([this.version, this.ids, item, options]);
    return keep(this.runs, key, this.runs.get(key) ?? this.computed(item, options), MOST_RUNS);
  }

  /** Of a place no more is made than is asked for. */
  computed(item, options) {
    const batch = this.compute.batch(this.parameters, this.config, this.ids, options, item), {summary} = batch, results = new Map();
    const get = (path) => {
      if (!results.has(path)) results.set(path, batch.result(path));
      return results.get(path);
    };
    return {
      ...summary, places: {get}, broken: mistakeOf(summary.broken),
      predicted: summary.predicted.map((choice) => ({...choice, token: this.tokenizers.target.tokens([choice.id])[0]})),
      get parameterGradients() { return batch.parameterGradients; },
    };
  }

  // ------------------------------------------------------------------ steps

  /** What must be waited for comes before anything changes. */
  step({rule, rate, item = 0}, options = {}) {
    const before = this.run({item, options}), {version, parameters, memory, past} = this;
    const key = JSON.stringify([version, this.ids, item, options, rule, rate]);
    if (this.ahead?.key !== key) {
      const moved = OPTIMIZERS[rule](parameters, before.parameterGradients, rate, memory);
      this.ahead = {key, after: Object.assign(this.fork(), moved, {version: this.newest + 1})};
    }
    const {after} = this.ahead, step = {rule, rate, broken: before.broken?.key ?? null};
    const entry = entryOf(after.run({item, options}), step, after.version);
    const history = this.history.at(-1)?.loss === before.loss ? this.history : [entryOf(before, null, version)];
    const undone = Math.max(2, Math.min(MOST_UNDONE, Math.floor(MOST_KEPT / this.size)));
    Object.assign(this, after, {past: [...past, {version, parameters, memory}].slice(-undone), history: [...history, entry],
      newest: after.version, ahead: null});
  }

  undo() {
    if (this.past.length === 0) return false;
    Object.assign(this, this.past.pop());
    this.history = this.history.slice(0, -1);
    return true;
  }

  reset() {
    Object.assign(this, {parameters: this.first, version: 0, memory: null, past: [], history: []});
  }

  fork() {
    const {items, past, runs} = this;
    return Object.assign(Object.create(Session.prototype), this, {items: [...items], past: [...past], runs: new Map(runs)});
  }
}

const entryOf = ({loss, probabilities, P}, step, version) => ({loss, probabilities, P, step, version});
