"""Lines in, translations and scores out: order, batches, blanks, lengths, evaluation."""

import io
import shutil

import numpy as np
import pytest

from tests.transformer.digits import PAIRS, SENTENCES, translated
from transformer import Translator, decode
from transformer.data import EOS, build_tokenizers
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
    assert first(translator.translate(io.StringIO("\r\n".join(lines)))) == expected
    assert first(translator.translate(lines, batch_size=7, beam=3)) == expected


@pytest.mark.parametrize(("lines", "references", "error", "message"), [
    ("one", ["一"], TypeError, r"give \[text\]"),
    (["one", 2], ["一"] * 2, TypeError, "line 2 is of type int"), (["one"], "一", TypeError, r"give \[text\]"),
    (["one", "two"], ["一"], ValueError, "2 sources, 1 references"),
    ([], [], ValueError, "there are no sentence pairs"),
])
def test_what_is_no_list_of_texts_is_refused(translator, lines, references, error, message):
    with pytest.raises(error, match=message):
        translator.evaluate(lines, references)


@pytest.mark.parametrize(("name", "given", "own"), [
    ("greedy", 2, "max_length, prefix"),
    ("beam_search", 3, "num_best, max_length, alpha, prefix"),
    ("generate", 3, "temperature, top_k, top_p, beam_size, alpha, end_id, never, memory"),
    ("stream", 3, "temperature, top_k, top_p, end_id, never, memory"),
    ("translate", 1, "beam, num_best, batch_size, alpha, max_length, ranks, prefix"),
    ("evaluate", 2, "beam, batch_size, alpha, max_length, ranks, bleu_tokenize"),
])
def test_an_option_that_there_is_not(translator, name, given, own):
    """The message has the function that was called and all its options, before it looks at anything else."""
    function = getattr(decode, name, None) or getattr(translator, name)
    for typo in ("beams", "min_lenght"):
        with pytest.raises(TypeError) as raised:
            function(*[None] * given, **{"min_length": 1, typo: 4})
        assert str(raised.value) == (f"{name}() has no option {typo!r}; there are {own}, min_length, "
                                     "repetition_penalty, no_repeat_ngram_size")


def test_blank_lines_stay_blank_and_the_model_does_not_see_them(translator, monkeypatch):
    assert first(translator.translate(["", "one", "  ", "two"], beam=2, num_best=2)) == ["", "一", "", "二"]
    monkeypatch.setattr("transformer.translator.beam_search", None)
    assert translator.translate(["", " \t"]) == [[Translation("", 0.0, [])]] * 2
    assert translator.translate([]) == []
    with pytest.raises(TypeError, match=r"give \[text\]"):
        translator.translate("one")


def test_scores_are_those_of_the_search(translator):
    [found] = translator.translate(["one two"], beam=4, num_best=3, alpha=1.2)
    source = [[*translator.source_tokenizer.encode("one two"), EOS]]
    [expected] = beam_search(translator.model, source, 4, 3, alpha=1.2)
    assert [(t.ids, t.score, t.text) for t in found] == [
        (h.ids, h.score, translator.target_tokenizer.decode(h.ids)) for h in expected]


def test_a_text_longer_than_the_positions_is_cut(translator):
    lines = ["one", "one " * 7, "one " * 7 + "two", "two"]  # 8 positions; end-of-sentence takes one
    found = [best for [best] in translator.translate(lines)]
    assert [best.truncated for best in found] == [False, False, True, False]
    assert (found[2].text, found[2].score) == (found[1].text, pytest.approx(found[1].score))
    assert translator.loss([(lines[2], "一 " * 9)]) == translator.loss([(lines[1], "一 " * 7)])
    assert translator.evaluate(lines, ["一"] * 4)["truncated"] == 1
    with pytest.raises(ValueError, match="batch_size"):
        translator.translate(["one"], batch_size=0)


def test_each_line_has_its_prefix(translator):
    found = first(translator.translate(["one two", "", "two"], prefix=["三", "二", ""]))
    assert found == [first(translator.translate(["one two"], prefix="三"))[0], "", "二"]
    assert found[0].startswith("三")
    for prefix, message in (("一 四", "lacks '四' of the prefix '一 四'"), (["一"], "3 lines, 1 prefixes")):
        with pytest.raises(ValueError, match=message):
            translator.translate(["one", "two", "three"], prefix=prefix)
    assert translator.evaluate(["one two"], ["一 二"], min_length=4)["outputs"] != ["一 二"]


@pytest.mark.parametrize(("text", "alpha"), [
    (None, 0.6), ('{"alpha": 1.5}', 1.5), ("{", 0.6), ('{"alpha": NaN}', 0.6), ('{"alpha": "1"}', 0.6)])
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
    """Against one sentence at a time, without padding; without dropout, and the mode stays."""
    total, tokens, model = 0.0, 0, translator.model
    for source, target in PAIRS:
        labels = [*translator.target_tokenizer.encode(target), EOS]
        total += model.eval().loss([[*translator.source_tokenizer.encode(source), EOS]], [labels], 0.0, "sum").item()
        tokens += len(labels)
    model.train()
    model.encoder.embedding.dropout.p = 0.9
    for batch_tokens in (4096, 5):
        assert translator.loss(PAIRS, batch_tokens) == pytest.approx(total / tokens, abs=1e-6)
    assert model.encoder.embedding.dropout.training


def test_evaluation(translator):
    references = ["一 二", " 一  二 一", "一", "三 三"]  # the spacing of words is no mistake
    result = translator.evaluate(["one two", "one two three", "two", "three"], iter(references), beam=2)
    assert result["outputs"] == (outputs := ["一 二", "一 二 三", "二", "三"])
    assert result["exact_match"] == 1 / 4
    assert result["token_accuracy"] == (2 + 2 + 0 + 1) / (2 + 3 + 1 + 2)
    references[1] = "一 二 一"
    assert (result["bleu"], result["chrf"]) == (metrics.bleu(outputs, references)[0],
                                                metrics.chrf(outputs, references)[0])
    assert (result["sentences"], result["truncated"]) == (4, 0)
    assert result["seconds"] > 0
    result = translator.evaluate(SOURCES, REFERENCES, bleu_tokenize="char")
    assert result["exact_match"] == result["token_accuracy"] == 1.0
    assert result["loss"] == translator.loss(PAIRS) < 0.05
    assert "tok:char" in result["bleu_signature"]


def test_tokens_are_counted_as_the_target_tokenizer_has_them(translator):
    """An unknown word is not got right by the unknown token; of characters, blanks count too."""
    _, characters = build_tokenizers("characters", ["a"], ["一 二三"])
    translator.loss = lambda *arguments: 0.0
    for tokenizer, said, reference, accuracy in (
            (translator.target_tokenizer, "一 <unk>", "一 万", 1 / 2), (characters, "二 一", "二 三", 2 / 3),
            (characters, "二 一", "二 一 ", 3 / 4)):
        translator.target_tokenizer, best = tokenizer, Translation(said, -1.0, tokenizer.encode(said))
        translator.translate = lambda *given, best=best, **options: [[best]]
        found = translator.evaluate(["one two"], [reference])
        assert (found["token_accuracy"], found["exact_match"]) == (accuracy, 0.0)
