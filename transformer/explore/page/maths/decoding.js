// Greedy decoding: the model writes the most probable token, reads it, and so on, as transformer/decode does.
//
// How to use:
//   for (const id of greedyTokens(parameters, config, source)) …   source: ids with end-of-sentence; the end is not given
//   mostProbable(row, config) -> id    of logits or probabilities, a Float64Array: the token that would be written

function* greedyTokens(parameters, config, source) {
  const tape = new Tape();
  const run = new ModelRun(tape, leavesOf(tape, parameters), config);
  const memory = run.encode(source);
  const most = Math.min(2 * source.length + 10, config.max_length); // the end counts, where there is one
  run.past = true; // each token is read once
  let id = config.bos_id;
  for (let length = 0; length < most; length++) {
    tape.nodes.length = run.places.length = 0; // no backward will ask for them, and they are many
    id = mostProbable(run.logits(run.decode([id], memory, length)).value.data, config);
    if (id === config.eos_id) return;
    yield id;
  }
}

/** Padding and begin-of-sentence are never written; of equally probable tokens the first is. */
function mostProbable(row, {pad_id: pad, bos_id: bos}) {
  let best = -1;
  for (let id = 0; id < row.length; id++) {
    if (id !== pad && id !== bos && (best < 0 || row[id] > row[best])) best = id;
  }
  return best;
}
