"""The command ``explain``: a page, or text; and what is refused in one line."""

import re

import numpy as np
import pytest

from tests.transformer.commands import call, refused
from tests.transformer.explore.test_page import data_of
from tests.transformer.traces import decode_array

CROSS = "decoder.layers.0.cross_attention"
NAMES = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", CROSS]


def test_a_page_and_the_numbers_of_the_terminal(run, tmp_path):
    """They are the same."""
    path = tmp_path / "page.html"
    result = call("explain", run, "three one", "--html", path, "--text", "--step", "A")
    assert result.exit_code == 0, result.output
    assert re.match(rf"wrote {re.escape(str(path))}: three one → 三 一 \(0\.\d MB\)\n", result.stderr)
    data = data_of(path.read_text(encoding="utf-8"))
    assert [entry["name"] for entry in data["attentions"]] == NAMES
    assert [entry["step"] for entry in data["attentions"][0]["history"]] == [120]
    assert data["model"]["texts"] == {"source": ["three one"], "target": ["三 一"]}
    weights = np.array([[float(number.replace("−", "-")) for number in line.split()[-3:]]
                        for line in result.stdout.splitlines() if re.match(r"\d: \S+ → ", line)])
    history = data["attentions"][-1]["history"][-1]["weights"]
    np.testing.assert_allclose(weights, decode_array(history)[0, 0], atol=2e-4)


def test_a_page_to_the_standard_output_with_a_target_and_an_attention_to_open_with(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("explain", run, "three", "一\n 二", "--html", "-", "--attention", NAMES[1])
    assert result.stdout.rstrip().endswith("</html>")
    data = data_of(result.stdout)
    assert (data["model"]["texts"], data["opens"]) == ({"source": ["three"], "target": ["一 二"]}, NAMES[1])
    assert re.fullmatch(r"wrote -: three → 一 二 \(0\.\d MB\)\n", result.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_does_not_run_in_a_page(run, tmp_path, monkeypatch):
    """One line says why and what shows it instead; no page is written, and the text is the same."""
    monkeypatch.chdir(tmp_path)
    said = refused("explain", run, "three", "一", "--limit", "0.1")
    assert re.search(r"its [\d,]+ parameters do not fit into a page of 0\.1 MB \(--limit\); --text .* \w+\.trace", said)
    assert list(tmp_path.iterdir()) == []
    assert call("explain", run, "three", "一", "--text").exit_code == 0


def test_without_a_file_the_page_is_in_the_current_folder(run, tmp_path, monkeypatch):
    """In place of an earlier page; a file that is none stays."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "explain.html"
    for source, target, over in (("one", "二", ""), ("two", "一", ", over an earlier page")):
        said = call("explain", run, source, target).stderr
        assert said.startswith(f"wrote explain.html{over}: {source} → {target} (")
        assert data_of(page.read_text(encoding="utf-8"))["title"] == f"{source} → {target}"
    page.write_text("<!doctype html>\n<p>my own", encoding="utf-8")
    assert "explain.html is there already" in refused("explain", run, "one", "二")
    assert page.read_text(encoding="utf-8") == "<!doctype html>\n<p>my own"
    page.unlink()
    page.mkdir()
    assert "explain.html is there already" in refused("explain", run, "one", "二")


def test_a_model_that_is_sure_has_hardly_any_gradient(run):
    """The note is for those who gave no target."""
    assert "TARGET" in call("explain", run, "one", "--text").stderr
    assert call("explain", run, "one", "一", "--text").stderr == ""


def test_one_step_of_a_batch_of_several_sentences(run, tmp_path):
    """The shorter are padded; the target that was given is the first sentence's; what no vocabulary has is told."""
    page = tmp_path / "page.html"
    result = call("explain", run, "three hello", "一 世界", "--also", "three one moin two", "--html", page, "--text",
                  "--attention", NAMES[1], "--head", 3, "--step", "dQ")
    assert f"\n{NAMES[1]} (decoder self attention), item 0, head 3 of 4" in result.stdout
    measured, said = (float(number.replace("−", "-")) for number in re.search(
        r"  measured (\S+), the gradient says (\S+):", result.stdout).groups())
    assert measured == pytest.approx(said, rel=1e-5)
    texts = data_of(page.read_text(encoding="utf-8"))["model"]["texts"]
    assert texts["source"] == ["three hello", "three one moin two"]
    notes = [re.fullmatch(r"note: (\S+.*): .* lacks (.*);.*", line) for line in result.stderr.splitlines()[:3]]
    assert [note.groups() for note in notes] == [("SOURCE", "'hello'"), ("TARGET", "'世界'"), ("--also 1", "'moin'")]
