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
//   A check, which nobody waits for, makes way for any other question; who asked it asks again.
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

const MOST_BATCHES = 2; // that the worker keeps; this thread keeps the answers of as many as a session has runs

/** Put in last, and what was used least lately goes where there would be more. */
function keep(map, key, value, most) {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
  return value;
}

function remote(script, failed) {
  const worker = new Worker(URL.createObjectURL(new Blob([script, "answerQuestions();"])));
  const batches = new Map(), numbers = new WeakMap(); // of parameters
  let sent = null, count = 0, busy = null; // one question at a time: what is asked after it may no longer be wanted
  function put(question, parameters, answers, key) {
    busy?.leave();
    const asked = {isCheck: question[0] === "check"};
    asked.answer = new Promise((resolve) => {
      asked.leave = resolve;
      worker.onmessage = ({data: [name, answer]}) => name === key && resolve(answers.set(key, revived(answer)));
      worker.onerror = () => resolve(failed());
      worker.postMessage([key, ...question, sent !== parameters && parameters]);
      sent = parameters;
    }).finally(() => { if (busy === asked) busy = null; });
    return asked;
  }
  function ask(what, [parameters, ...given], ...more) {
    if (!numbers.has(parameters)) numbers.set(parameters, count++);
    const batch = [numbers.get(parameters), given], [name, key] = [batch, [what, more]].map((of) => JSON.stringify(of));
    const answers = keep(batches, name, batches.get(name) ?? new Map(), MOST_RUNS);
    if (answers.has(key)) return answers.get(key);
    if (busy === null || busy.isCheck && what !== "check") busy = put([what, ...batch, more], parameters, answers, key);
    throw new Waiting(busy.answer);
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
  check: (batch, path, symbol) => checking(batch.result(path), symbol),
  nudge: (batch, path, cell, epsilon) => nudge(batch.result(path), cell, epsilon),
};

function answerQuestions() {
  const batches = new Map();
  let parameters = null, newest = 0;
  onmessage = async ({data: [name, what, number, given, more, others]}) => {
    if (others) parameters = revived(others);
    const mine = newest += 1, key = JSON.stringify([number, given]), batch = () => keep(batches, key, batches.get(key) ?? HERE.batch(parameters, ...given), MOST_BATCHES);
    const answer = what === "write" ? HERE.write(parameters, ...given) : ANSWERS[what](batch(), ...more);
    if (what !== "check") return postMessage([name, answer]);
    do {
      const {done, value} = answer.next();
      if (done) return postMessage([name, value]);
      await new Promise((go) => { setTimeout(go); }); // a question may have come
    } while (mine === newest);
  };
}
