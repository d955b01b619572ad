"use strict";
// A large model computes in a worker, so that the window answers meanwhile. What is not there yet throws `Waiting`; who
// caught it does the same again once the answer has come.
//
// How to use:
//   HERE, remote(script, failed)   where a session computes: in this thread, or in a worker with these scripts; `failed` is
//                                  called where there can be none. Both have
//       write(parameters, config, source) -> [id…]                           greedyTokens
//       batch(parameters, config, pairs, options, item) -> a BatchRun        of one in a worker summary, result and
//                                                  parameterGradients alone; its results have ask(what, …) of ANSWERS
//   await settled(work)            what work() returns, once it waits for nothing; it may be called several times
//   answerQuestions()              the worker

class Waiting {
  constructor(answer) {
    this.answer = answer;
  }
}

async function settled(work) {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Waiting)) throw error;
      await error.answer;
    }
  }
}

const HERE = {write: (...given) => [...greedyTokens(...given)], batch: (...given) => new BatchRun(...given)};

const MOST_ANSWERS = 64, MOST_BATCHES = 2; // that are kept, in this thread and in the worker

/** Put in last, and what was put in first goes where there would be more. */
function keep(map, key, value, most) {
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
  return value;
}

function remote(script, failed) {
  const worker = new Worker(URL.createObjectURL(new Blob([script, "answerQuestions();"])));
  const answers = new Map(), numbers = new WeakMap(); // of parameters
  let sent = null, count = 0, busy = null; // one question at a time: what is asked after it may no longer be wanted
  const put = (question, key, parameters) => new Promise((resolve) => {
    worker.onmessage = ({data}) => resolve(keep(answers, key, revived(data), MOST_ANSWERS));
    worker.onerror = () => resolve(failed());
    worker.postMessage([...question, sent !== parameters && parameters]);
    sent = parameters;
  }).finally(() => { busy = null; });
  function ask(what, [parameters, ...given], ...more) {
    if (!numbers.has(parameters)) numbers.set(parameters, count++);
    const question = [what, numbers.get(parameters), given, more], key = JSON.stringify(question);
    if (answers.has(key)) return answers.get(key);
    throw new Waiting(busy ??= put(question, key, parameters));
  }
  return {
    write: (...given) => ask("write", given),
    batch: (...given) => ({
      get summary() { return ask("summary", given); },
      get parameterGradients() { return ask("parameterGradients", given); },
      result(path) {
        const {broken, ...rest} = ask("result", given, path);
        return {...rest, broken: mistakeOf(broken), ask: (what, ...more) => ask(what, given, path, ...more)};
      },
    }),
  };
}

/** What comes from another thread has lost its class. */
function revived(value) {
  if (ArrayBuffer.isView(value?.data)) Object.setPrototypeOf(value, Matrix.prototype);
  else if (typeof value === "object") for (const inner of value instanceof Map ? value.values() : Object.values(value ?? {})) revived(inner);
  return value;
}

const ANSWERS = {
  summary: ({summary}) => summary,
  parameterGradients: ({parameterGradients}) => parameterGradients,
  /** Without functions, and without the whole place that each record knows. */
  result(batch, path) {
    const {again, full, broken, heads, shared, items, ...rest} = batch.result(path);
    const alone = (of) => ({heads: of.heads.map(({place, ...record}) => record), shared: {...of.shared, place: null}});
    return {...rest, ...alone({heads, shared}), items: items.map(alone), broken: broken?.key};
  },
  check: (batch, path, symbol) => checkTensor(batch.result(path), symbol),
  nudge: (batch, path, cell, epsilon) => nudge(batch.result(path), cell, epsilon),
};

function answerQuestions() {
  const batches = new Map();
  let parameters = null;
  onmessage = ({data: [what, number, given, more, others]}) => {
    if (others) parameters = revived(others);
    const key = JSON.stringify([number, given]), batch = () => batches.get(key) ?? keep(batches, key, HERE.batch(parameters, ...given), MOST_BATCHES);
    postMessage(what === "write" ? HERE.write(parameters, ...given) : ANSWERS[what](batch(), ...more));
  };
}
