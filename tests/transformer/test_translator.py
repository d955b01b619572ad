"""Lines in, translations and scores out: order, batches, blanks, lengths, evaluation."""

import io
import shutil

import numpy as np
import pytest

import minigrad

from tests.transformer.digits import PAIRS, SENTENCES, translated
from transformer import Translator
from transformer.data import BOS, EOS, build_tokenizers
from transformer.decode import beam_search
from transformer.training import metrics
from transformer.translator import DECODING, Translation

SOURCES, REFERENCES = zip(*PAIRS, strict=True)


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


@pytest.mark.parametrize("lines", [
    ("one", "two three"), iter(["one", "two three"]), io.StringIO("one\ntwo three\n"), ["one\r\n", "two three\n"]])
def test_any_iterable_of_lines(translator, lines):
    assert first(translator.translate(lines)) == ["一", "二 三"]


@pytest.mark.parametrize(("lines", "message"), [
    ("one", r"give \[text\]"), (b"one", r"give \[text\]"), (["one", 2], "line 2 is of type int"),
    ([b"one"], "line 1 is of type bytes")])
def test_what_is_no_list_of_texts_is_refused(translator, lines, message):
    for refusing in (translator.translate, lambda lines: translator.evaluate(lines, ["一"]),
                     lambda lines: translator.evaluate(["one"], lines)):
        with pytest.raises(TypeError, match=message):
            refusing(lines)


def test_blank_lines_stay_blank_and_the_model_does_not_see_them(translator, monkeypatch):
    assert first(translator.translate(["", "one", "  ", "two"], beam=2, num_best=2)) == ["", "一", "", "二"]
    monkeypatch.setattr("transformer.translator.beam_search", None)
    assert translator.translate(["", " \t"]) == [[Translation("", 0.0, [])]] * 2
    assert translator.translate([]) == []


def test_scores_are_those_of_the_search(translator):
    [found] = translator.translate(["one two"], beam=4, num_best=3, alpha=1.2)
    source = [[*translator.source_tokenizer.encode("one two"), EOS]]
    [expected] = beam_search(translator.model, source, 4, 3, alpha=1.2)
    assert [(t.ids, t.score) for t in found] == [(h.ids, h.score) for h in expected]
    assert [t.text for t in found] == [translator.target_tokenizer.decode(h.ids) for h in expected]
    assert found[0].score > found[1].score > found[2].score


def test_a_text_longer_than_the_positions_is_cut(translator):
    lines = ["one", "one " * 7, "one " * 7 + "two", "two"]  # 8 positions; end-of-sentence takes one
    found = [best for [best] in translator.translate(lines)]
    assert [best.truncated for best in found] == [False, False, True, False]
    assert (found[2].text, found[2].score) == (found[1].text, pytest.approx(found[1].score))
    assert translator.loss([(lines[2], "一 " * 9)]) == translator.loss([(lines[1], "一 " * 7)])
    assert translator.evaluate(lines, ["一"] * 4)["truncated"] == 1
    for name, wrong in (("batch_size", 0), ("num_best", 3)):
        with pytest.raises(ValueError, match=f"translate: {name}"):
            translator.translate(["one"], **{name: wrong})


def test_each_line_has_its_prefix(translator):
    found = first(translator.translate(["one two", "", "three"], prefix=["三", "二", ""]))
    assert found == [first(translator.translate(["one two"], prefix="三"))[0], "", "三"]
    assert found[0].startswith("三")
    for prefix, message in (("一 四", "lacks '四' of the prefix '一 四'"), (["一"], "3 lines, 1 prefixes")):
        with pytest.raises(ValueError, match=message):
            translator.translate(["one", "two", "three"], prefix=prefix)
    plain, controlled = (translator.evaluate(SOURCES, REFERENCES, **options)["outputs"]
                         for options in ({}, {"no_repeat_ngram_size": 1}))
    assert plain == [*REFERENCES] != controlled


@pytest.mark.parametrize(("text", "alpha"), [
    (None, 0.6), ('{"alpha": 1.5}', 1.5), ("{", 0.6), ("[1]", 0.6), ('{"alpha": NaN}', 0.6), ('{"alpha": "1"}', 0.6)])
def test_alpha_is_by_default_what_the_training_chose(run, tmp_path, capsys, text, alpha):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / DECODING).unlink(missing_ok=True)
    if text is not None:
        (copy / DECODING).write_text(text, encoding="utf-8")
    translator = Translator.load(copy)
    assert translator.alpha == alpha
    assert capsys.readouterr().err.count("note: ") == (text is not None and alpha == 0.6)
    lines = ["one two", "three"]
    chosen, given, other = (translator.translate(lines, beam=3, **alphas) for alphas in (
        {}, {"alpha": alpha}, {"alpha": 3.0}))
    assert chosen == given != other


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
    result = translator.evaluate(SOURCES, iter(REFERENCES), beam=2)
    assert result["exact_match"] == result["token_accuracy"] == 1.0
    assert result["loss"] == translator.loss(PAIRS) < 0.05
    assert result["chrf"] == 100.0
    assert result["outputs"] == [*REFERENCES]
    assert (result["sentences"], result["truncated"]) == (len(PAIRS), 0)
    assert result["seconds"] > 0
    references = ["一 二", "一 二 一", "一", "三 三"]
    result = translator.evaluate(["one two", "one two three", "two", "three"], references)
    assert result["exact_match"] == 1 / 4
    assert result["token_accuracy"] == (2 + 2 + 0 + 1) / (2 + 3 + 1 + 2)
    outputs = ["一 二", "一 二 三", "二", "三"]
    assert result["bleu"] == metrics.bleu(outputs, references)[0]
    assert result["chrf"] == metrics.chrf(outputs, references)[0]
    assert "tok:char" in translator.evaluate(["one"], ["一"], bleu_tokenize="char")["bleu_signature"]
    assert translator.evaluate(["one  two"], [" 一   二 "])["exact_match"] == 1.0, "the spacing of words is no mistake"


def test_an_unknown_word_is_not_got_right_by_the_unknown_token(translator, monkeypatch):
    unknown = [[Translation("一 <unk>", -1.0, [*translator.target_tokenizer.encode("一"), 3])]]
    monkeypatch.setattr(translator, "translate", lambda *arguments: unknown)
    assert translator.evaluate(["one two"], ["一 万"])["token_accuracy"] == 1 / 2


def test_characters_are_the_tokens_of_a_model_of_characters(translator):
    _, characters = build_tokenizers("characters", ["a"], ["一 二三"])
    spelt = Translator(translator.model, translator.source_tokenizer, characters)
    spelt.translate = lambda *arguments: [[Translation("二 一", -1.0, characters.encode("二 一"))]]
    spelt.loss = lambda *arguments: 0.0
    assert spelt.evaluate(["one two"], ["二 三"])["token_accuracy"] == 2 / 3
    assert spelt.evaluate(["one two"], ["二 一 "])["exact_match"] == 0.0  # blanks are characters too


def test_pairs_that_cannot_be_evaluated(translator):
    with pytest.raises(ValueError, match="there are no sentence pairs"):
        translator.evaluate([], [])
    with pytest.raises(ValueError, match="2 sources, 1 references"):
        translator.evaluate(["one", "two"], ["一"])
