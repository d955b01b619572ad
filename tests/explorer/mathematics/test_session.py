"""The live model on typed texts: what it writes, its loss and its steps are those of the engine, in float64."""

import json
from itertools import chain

import numpy as np
import pytest

from minigrad import optim

from tests.explorer.mathematics.conftest import MATHEMATICS
from tests.explorer.mathematics.whole_model import assert_same
from tests.explorer.pages import WORDS
from tests.transformer.decoding_models import peaked_model, prefer
from tests.transformer.tiny import tiny_model
from transformer.data import WordTokenizer
from transformer.decode import greedy
from transformer.explore.page import joined_scripts
from transformer.explore.translation import explain
from transformer.translator import Translator

LETTERS = WordTokenizer.train(["a b c d e"]), WordTokenizer.train(["x y"])  # those of `peaked_model`
TEXTS = ["a", "b c d", "e d c b a", "c c c c c c c c", "unheard a unheard of"]
SOURCES, TARGETS = ["a b c d", "e f"], ["f", "g a b"]
MODELS = {
    "pre": {"output_bias": True},
    "post": {"norm": "post", "activation": "gelu", "share_embeddings": True, "tie_output": True},
    "learned": {"positions": "learned", "activation": "silu", "bias": False, "norm_bias": False},
}


@pytest.fixture
def ask(page):
    """``ask(translator, sources, targets)`` begins a session, and returns what evaluates an expression of `session`."""

    def begin(translator, sources=SOURCES, targets=TARGETS):
        page.evaluate("(live) => { globalThis.session = new Session(JSON.parse(JSON.stringify(live), decoded)); }",
                      explain(translator, sources, targets).live)
        return lambda expression, *arguments: page.evaluate(f"(given) => {expression}", list(arguments))

    return begin


@pytest.fixture(params=MODELS)
def translator(request):
    return Translator(tiny_model(**MODELS[request.param]), WORDS, WORDS)


def parameters(ask):
    """As NumPy has them: a vector has one axis here, and is a row there."""
    return ask("Object.fromEntries(Array.from(session.parameters, ([name, w]) => [name, w.toNested()]))")


# --- Texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sharpness", "preferred"), [
    (6.0, {}), (6.0, {"eos": -60.0}), (6.0, {"eos": 60.0}), (6.0, {"pad": 60.0, "bos": 50.0}), (0.0, {"eos": -1.0}),
], ids=["", "never ends", "ends at once", "specials", "equally probable"])
def test_it_writes_what_the_engine_writes(ask, seed, sharpness, preferred):
    """Token by token: as long a text at most, never padding or a beginning, and the first of what is equal."""
    model = peaked_model(seed, sharpness, max_length=16, first_position=1, sinusoid_layout="halves").eval()
    prefer(model, **preferred)
    asked = ask(Translator(model, *LETTERS), ["a"], ["x"])
    found = asked("given.map((text) => session.greedy(text))", *TEXTS)
    for text, written in zip(TEXTS, found, strict=True):
        [expected] = greedy(model, [[*LETTERS[0].encode(text), 2]])
        assert written == {"ids": expected.ids, "text": LETTERS[1].decode(expected.ids)}


def test_without_a_target_the_model_writes_it(ask):
    """And what it wrote is explained, cut off where no position is left for the end, as `explain` does it."""
    translator = Translator(prefer(peaked_model(1, max_length=12), eos=-60.0).eval(), *LETTERS)
    expected = explain(translator, TEXTS[1])
    found = ask(translator, ["a"], ["x"])("""(session.setTexts({source: given[0], target: null}),
                                              {...session.items[0], loss: session.run().loss})""", TEXTS[1])
    assert (found["written"], found["target"]) == (True, expected.live["texts"]["target"][0])
    assert found["ids"] == {side: rows[0] for side, rows in expected.live["ids"].items()}
    assert found["loss"] == pytest.approx(expected.loss, rel=1e-9)


def test_a_typed_text_is_explained_as_explain_does_it(ask, translator):
    """Unknown words and a batch included: the loss, and what the model would rather write."""
    asked = ask(translator)
    sources, targets = ["g unheard a", SOURCES[1]], ["b b <eos>", TARGETS[1]]
    expected = explain(translator, sources, targets)
    found = asked("""(session.setTexts({source: given[0], target: given[1]}, 0),
                     {run: session.run({item: 0}), tokens: session.tokens(0), unknown: session.unknown(0)})""",
                  sources[0], targets[0])
    run = found["run"]
    assert run["loss"] == pytest.approx(expected.loss, rel=1e-9)
    assert found["unknown"] == {"source": ["unheard"], "target": ["<eos>"]}
    assert found["tokens"] == {"source": ["g", "<unk>", "a", "<eos>"], "target": ["<bos>", "b", "b", "<unk>"],
                               "next": ["b", "b", "<unk>", "<eos>"]}
    logits = expected.trace.model([[*WORDS.encode(sources[0]), 2]], [[1, *WORDS.encode(targets[0])]]).numpy()[0]
    best = logits[:, 2:].argmax(-1) + 2  # padding and the beginning are never written
    assert [choice["id"] for choice in run["predicted"]] == best.tolist()


@pytest.mark.parametrize(("texts", "side", "problem"), [
    ({"source": " \x1f", "target": "a"}, "source", "empty"),
    ({"source": "a", "target": "\u2003"}, "target", "empty"),
    ({"source": "a " * 12, "target": None}, "source", "13 tokens with end-of-sentence, more than the model's 12"),
    ({"source": "a", "target": "b " * 12}, "target", "13 tokens with end-of-sentence, more than the model's 12"),
])
def test_a_text_that_cannot_be_read(ask, texts, side, problem):
    """It changes nothing; one that just fits is read."""
    asked = ask(Translator(tiny_model(), WORDS, WORDS))
    found = asked("""(() => {
      const before = JSON.stringify(session.items);
      try { session.setTexts(given[0]); } catch (error) {
        return {text: error instanceof TextError, side: error.side, says: error.message,
                same: before === JSON.stringify(session.items)};
      }
    })()""", texts)
    assert found.pop("says").count(problem) == 1
    assert found == {"text": True, "side": side, "same": True}
    asked("session.setTexts({source: given[0], target: given[0]})", "a " * 11)
    assert asked("session.run().places.get('output').shared.P.rows") == 12


# --- Steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "rate", "optimizer"), [("sgd", 0.3, optim.SGD), ("adam", 0.01, optim.Adam)])
def test_five_steps_are_those_of_the_engine(ask, translator, rule, rate, optimizer):
    """The losses before, between and after them, the probabilities, and every parameter at the end."""
    explanation = explain(translator, SOURCES, TARGETS)
    asked = ask(translator)
    asked(f"{{ for (let n = 0; n < 5; n++) session.step({{rule: '{rule}', rate: {rate}}}); }}")
    model = explanation.trace.model
    descent = optimizer(model.parameters(), lr=rate)
    losses = []
    for _ in range(5):
        descent.zero_grad()
        loss = explanation.again()
        loss.backward()
        descent.step()
        losses.append(loss.item())
    history = asked("session.history")
    np.testing.assert_allclose([entry["loss"] for entry in history],
                               [*losses, explanation.again().item()], rtol=1e-9)
    tokens = [len(row) for row in explanation.live["ids"]["target"]]
    for entry in history:
        assert [len(row) for row in entry["probabilities"]] == tokens
        assert -np.log([*chain(*entry["probabilities"])]).mean() == pytest.approx(entry["loss"], rel=1e-9)
    found = parameters(asked)
    assert found.keys() == dict(model.named_parameters()).keys()
    for name, parameter in model.named_parameters():
        assert_same(found[name], np.atleast_2d(parameter.numpy()), name)


def test_undo_and_reset_give_back_every_bit(ask, translator):
    asked = ask(translator)
    states = [parameters(asked)]
    for rule in ("adam", "adam", "sgd", "adam"):
        asked(f"session.step({{rule: '{rule}', rate: 0.05}})")
        states.append(parameters(asked))
    losses = [entry["loss"] for entry in asked("session.history")]
    assert asked("session.undo()")
    asked("session.step({rule: 'adam', rate: 0.05})")  # the same again, by the same means
    assert parameters(asked) == states[-1]
    for state, loss in zip(states[-2::-1], losses[-2::-1], strict=True):
        assert asked("session.undo()")
        assert parameters(asked) == state
        assert asked("session.run().loss") == loss
        assert asked("session.history.at(-1).loss") == loss
    assert not asked("session.undo()")
    asked("session.step({rule: 'sgd', rate: 0.05})")
    assert asked("session.run().loss") not in losses  # though another step was taken from there before
    asked("session.reset()")
    assert parameters(asked) == states[0]
    assert (asked("session.run().loss"), asked("session.history"), asked("session.undo()")) == (losses[0], [], False)


def test_a_worker_computes_the_same(page, ask, translator):
    """Every tensor of every place, after a text of the model's own and a step, and the checks."""
    ask(translator)
    here, there = page.evaluate("""async (script) => {
      const leftOut = ["place", "items"];
      const plain = (name, value) => (leftOut.includes(name) ? undefined : value instanceof Map ? [...value] : value);
      const worker = remote(script, () => { throw new Error("no worker"); });
      return Promise.all([HERE, worker].map(async (compute) => {
        const one = Object.assign(session.fork(), {compute});
        const options = {broken: "rowsum"}, all = [await settled(() => one.greedy("a b"))];
        await settled(() => one.setTexts({source: "c d", target: null}));
        await settled(() => one.step({rule: "adam", rate: 0.01}, options));
        const run = one.run({options});
        const at = (path) => [run.places.get(path), checkTensor(run.places.get(path), "Y")];
        for (const path of run.order) all.push(await settled(() => at(path)));
        const last = run.places.get("output"), check = (symbol) => () => checkTensor(last, symbol);
        const together = [check("Z"), () => one.greedy("c"), check("X")];
        all.push(...await Promise.all(together.map(settled))); // a check makes way, and is made after all
        return JSON.stringify([...all, run, one.history, await settled(() => run.parameterGradients)], plain);
      }));
    }""", joined_scripts(MATHEMATICS))
    assert json.loads(here) == json.loads(there)
    assert len(here) > 10_000
