"""The command ``explain``: a page, or text; and what is refused in one line."""

import re

import pytest

from tests.transformer.commands import call, refused
from tests.transformer.explore.test_page import data_of

CROSS = "decoder.layers.0.cross_attention"
NAMES = ["encoder.layers.0.self_attention", "decoder.layers.0.self_attention", CROSS]


def test_a_page_and_the_text_of_a_batch(run, tmp_path):
    """What no vocabulary has is told."""
    path = tmp_path / "page.html"
    result = call("explain", run, "three one", "--html", path, "--text", "--step", "A", "--also", "three one moin two")
    assert result.exit_code == 0, result.output
    note, wrote = result.stderr.splitlines()[:2]
    assert re.fullmatch(r"note: --also 1: .* lacks 'moin';.*", note)
    assert re.fullmatch(rf"wrote {re.escape(str(path))}: three one → 三 一.* \(0\.\d MB\)", wrote)
    data = data_of(path.read_text(encoding="utf-8"))
    assert [entry["name"] for entry in data["attentions"]] == NAMES
    assert data["model"]["texts"]["source"] == ["three one", "three one moin two"]
    assert f"\n{CROSS} (cross attention of layer 1), item 1, head 1 of " in result.stdout


def test_a_page_with_a_target_and_an_attention_to_open_with(run, tmp_path):
    path = tmp_path / "page.html"
    call("explain", run, "three", "一\n 二", "--html", path, "--attention", NAMES[1])
    data = data_of(path.read_text(encoding="utf-8"))
    assert (data["model"]["texts"], data["opens"]) == ({"source": ["three"], "target": ["一 二"]}, NAMES[1])


def test_a_model_that_does_not_run_in_a_page(run, tmp_path, monkeypatch):
    """One line says why and what shows it instead; no page is written, and the text is the same."""
    monkeypatch.chdir(tmp_path)
    said = refused("explain", run, "three", "一", "--limit", "0.1")
    assert re.search(r"its [\d,]+ parameters do not fit into a page of 0\.1 MB \(--limit\); --text .* \w+\.trace", said)
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_the_page_is_in_the_current_folder(run, tmp_path, monkeypatch):
    """In place of an earlier page; a file that is none stays."""
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "explain.html"
    for source, target in (("one", "二"), ("two", "一")):
        said = call("explain", run, source, target).stderr
        assert said.startswith(f"wrote explain.html: {source} → {target} (")
        assert data_of(page.read_text(encoding="utf-8"))["title"] == f"{source} → {target}"
    for change in (lambda: page.write_text("<!doctype html>\n<p>my own"), page.unlink, page.mkdir):
        change()
        if page.exists():
            assert "explain.html is there already" in refused("explain", run, "one", "二")


def test_a_step_of_a_head_as_text(run):
    """A model that is sure has hardly any gradient, of which a note tells those who gave no target."""
    assert "TARGET" in call("explain", run, "one", "--text").stderr
    result = call("explain", run, "three", "一", "--text", "--attention", NAMES[1], "--head", 4, "--step", "dQ")
    assert result.stderr == ""
    assert f"\n{NAMES[1]} (decoder self attention of layer 1), item 1, head 4 of 4" in result.stdout
    measured, said = (float(number.replace("−", "-")) for number in re.search(
        r"  measured (\S+), the gradient says (\S+):", result.stdout).groups())
    assert measured == pytest.approx(said, rel=1e-5)
