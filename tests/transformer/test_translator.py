"""Lines in, translations and scores out: order, batches, blanks, lengths, evaluation."""

import numpy as np
import pytest

import minigrad

from tests.transformer.digits import PAIRS, SENTENCES, translated
from transformer.data import BOS, EOS, build_tokenizers
from transformer.decode import beam_search
from transformer.training import metrics
from transformer.translator import TooLong, Translation, Translator


@pytest.fixture
def translator(run):
    return Translator.load(run)


def first(found):
    return [best[0].text for best in found]


def test_the_order_of_the_lines_is_kept_whatever_the_batches(translator):
    lines = [SENTENCES[i] for i in np.random.default_rng(3).permutation(len(SENTENCES))]
    expected = [translated(line) for line in lines]
    assert first(translator.translate(lines)) == expected
    assert first(translator.translate(lines, batch_size=7, beam=3)) == expected


def test_sentences_of_one_batch_have_like_lengths(translator, monkeypatch):
    shapes = []

    def recording(model, source, *arguments):
        shapes.append(source.shape)
        return beam_search(model, source, *arguments)

    monkeypatch.setattr("transformer.translator.beam_search", recording)
    translator.translate(["one two three", "one", "two two", "two", "three three three", "one three"], batch_size=2)
    assert shapes == [(2, 2), (2, 3), (2, 4)]  # words and end-of-sentence


def test_blank_lines_stay_blank_and_the_model_does_not_see_them(translator, monkeypatch):
    assert first(translator.translate(["", "one", "  ", "two"], beam=2, num_best=2)) == ["", "一", "", "二"]
    monkeypatch.setattr("transformer.translator.beam_search", None)
    assert translator.translate(["", " \t"]) == [[Translation("", 0.0, [])]] * 2
    assert translator.translate([]) == []


def test_scores_are_those_of_the_search(translator):
    [found] = translator.translate(["one two"], beam=4, num_best=3, length_penalty="mean")
    source = [[*translator.source_tokenizer.encode("one two"), EOS]]
    [expected] = beam_search(translator.model, source, 4, 3, length_penalty="mean")
    assert [(t.ids, t.score) for t in found] == [(h.ids, h.score) for h in expected]
    assert [t.text for t in found] == [translator.target_tokenizer.decode(h.ids) for h in expected]
    assert found[0].score > found[1].score > found[2].score


def test_a_line_longer_than_the_positions_is_named(translator):
    lines = ["one", "one " * 7, "one " * 8, "two"]  # 8 positions; end-of-sentence takes one
    assert len(translator.translate(lines[:2])) == 2
    with pytest.raises(TooLong, match=r"^line 3: 9 tokens .*, more than the model's 8 positions") as error:
        translator.translate(lines)
    assert error.value.index == 2
    with pytest.raises(ValueError, match="batch_size"):
        translator.translate(["one"], batch_size=0)


def test_the_loss_is_the_mean_over_all_target_tokens(translator):
    """Against one sentence at a time, without padding."""
    total, tokens = 0.0, 0
    for source, target in PAIRS:
        source_ids = [[*translator.source_tokenizer.encode(source), EOS]]
        ids = translator.target_tokenizer.encode(target)
        with minigrad.no_grad():
            logits = translator.model.eval()(source_ids, [[BOS, *ids]]).numpy()[0].astype(np.float64)
        chosen = logits[np.arange(len(ids) + 1), [*ids, EOS]]
        total += float((np.log(np.exp(logits).sum(axis=-1)) - chosen).sum())
        tokens += len(ids) + 1
    assert translator.loss(PAIRS) == pytest.approx(total / tokens, abs=1e-6)
    assert translator.loss(PAIRS, batch_tokens=5) == pytest.approx(total / tokens, abs=1e-6)


def test_the_loss_is_without_dropout_and_leaves_the_mode_alone(translator):
    before = translator.loss(PAIRS)
    translator.model.train()
    translator.model.encoder.embedding.dropout.p = 0.9
    assert translator.loss(PAIRS) == before
    assert translator.model.encoder.embedding.dropout.training


def test_evaluation(translator):
    result = translator.evaluate(PAIRS, beam=2)
    assert result["exact_match"] == result["token_accuracy"] == 1.0
    assert result["loss"] == translator.loss(PAIRS) < 0.05
    assert result["bleu_signature"].startswith("nrefs:1|case:mixed|")
    assert result["sentences"] == len(PAIRS)
    assert result["seconds"] > 0
    pairs = [("one two", "一 二"), ("one two three", "一 二 一"), ("two", "一"), ("three", "三 三")]
    result = translator.evaluate(pairs)
    assert result["exact_match"] == 1 / 4
    assert result["token_accuracy"] == (2 + 2 + 0 + 1) / (2 + 3 + 1 + 2)
    assert result["bleu"] == metrics.bleu(["一 二", "一 二 三", "二", "三"], [target for _, target in pairs])[0]
    assert translator.evaluate([("one  two", " 一   二 ")])["exact_match"] == 1.0, "the spacing of words is no mistake"


def test_an_unknown_word_is_not_got_right_by_the_unknown_token(translator, monkeypatch):
    unknown = [[Translation("一 <unk>", -1.0, [*translator.target_tokenizer.encode("一"), 3])]]
    monkeypatch.setattr(translator, "translate", lambda *arguments: unknown)
    assert translator.evaluate([("one two", "一 万")])["token_accuracy"] == 1 / 2


def test_characters_are_the_tokens_of_a_model_of_characters(translator):
    _, characters = build_tokenizers("characters", ["a"], ["一 二三"])
    spelt = Translator(translator.model, translator.source_tokenizer, characters)
    spelt.translate = lambda *arguments: [[Translation("二 一", -1.0, characters.encode("二 一"))]]
    spelt.loss = lambda *arguments: 0.0
    assert spelt.evaluate([("one two", "二 三")])["token_accuracy"] == 2 / 3
    assert spelt.evaluate([("one two", "二 一 ")])["exact_match"] == 0.0  # blanks are characters too


def test_pairs_that_cannot_be_evaluated(translator):
    with pytest.raises(ValueError, match="there are no sentence pairs"):
        translator.evaluate([])
    with pytest.raises(TooLong, match=r"^line 2: 9 target tokens .*, more than the model's 8 ") as error:
        translator.evaluate([("one", "一"), ("one", "一 " * 8)])
    assert error.value.index == 1
    with pytest.raises(TooLong, match=r"^line 1: 10 source tokens"):
        translator.loss([("one " * 9, "一")])
