"""``train``: what is refused, in one line."""

import shutil
import sys

import pytest

from tests.transformer.commands import SMALL, contents, refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give one of --task NAME and --train SRC TGT --valid SRC TGT"),
        ("--task copy --train good.src good.tgt", "give one of --task NAME and --train SRC TGT"),
        ("--train good.src good.tgt", "--train and --valid belong together"),
        ("--task copy --valid good.src good.tgt", "--train and --valid belong together"),
        ("--task chess", "'chess' is not one of 'copy', 'reverse', 'sort', 'addition', 'dates'"),
        ("--task copy --d-model 64 --heads 5", "d_model (64) must be a multiple of num_heads (5)"),
        ("--task copy --d-model 7 --heads 7", "even d_model"),
        ("--task copy --steps -3", "-3 is not in the range x>=1"),
        ("--task copy --learning-rate 0", "0.0 is not in the range x>0"),
        ("--task copy --dropout 1", "1.0 is not in the range 0<=x<1"),
        ("--task copy --seed -1", "-1 is not in the range x>=0"),
        ("--task copy --step", "--steps"),
        ("--task copy --no-such-option", "No such option"),
        ("--task copy --micro-batches 0", "0 is not in the range x>=1"),
        ("--task copy --precision bfloat16", "'bfloat16' is not one of 'float32', 'tf32', 'float16'"),
        ("--task copy --steps many", "'many' is not a valid integer"),
        ("--task copy --device tpu", "unknown device 'tpu'; use 'cpu', 'cuda' or 'cuda:N'"),
        ("--task copy --vocab-size 4", "'--vocab-size': 4 is not in the range x>=5"),
        ("--task copy --tokens bpe --vocab-size 200", "--vocab-size 200 is too small for --tokens bpe: 256 bytes"),
        ("--task copy --learning-rate nan", "'--learning-rate': nan is not a finite number"),
        ("--task copy --minutes inf", "'--minutes': inf is not a finite number"),
        ("--task copy --max-length 5 --steps 1", "positions (there are"),
        ("--task copy --max-length 5 --steps 1", "training pair 1, '"),
        ("--task copy --max-length 5 --steps 1", "raise --max-length"),
        ("--task copy extra", "unexpected extra argument"),
        ("--train missing.src good.tgt --valid good.src good.tgt", "cannot read"),
        ("--train good.src good.tgt --valid good.src missing.src", "missing.src"),
        ("--train good.src short.tgt --valid good.src good.tgt", "has 2 lines"),
        ("--train good.src good.tgt --valid empty.src empty.src", "empty.src is empty"),
        ("--train blank.src blank.src --valid good.src good.tgt", "blank.src is empty"),
        ("--train latin.src good.tgt --valid good.src good.tgt", "latin.src, line 2: not valid UTF-8 (byte 0xe9)"),
        ("--train good.src long.tgt --valid good.src good.tgt", "long.tgt, line 2: 301 target tokens"),
        ("--train good.src good.tgt --valid gaps.src gaps.tgt", "gaps.src, line 4: 302 source tokens"),
        ("--train good.src good.tgt --valid good.src good.tgt --train-count 9", "files are used whole"),
    ],
)
def test_mistakes_in_training(files, tmp_path, arguments, message):
    words = [str(files.get(word, word)) for word in arguments.split()]
    out = tmp_path / "run"
    assert message in " ".join(refused("train", *words, "--out", out, "--quiet").split())
    assert not out.exists()


def test_an_out_folder_is_needed():
    assert "Missing option '--out'" in refused("train", "--task", "copy")


def test_a_run_is_not_overwritten(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    before = contents(copy)
    assert "already holds a training run; go on with --resume" in refused("train", "--task", "copy", "--out", copy)
    assert contents(copy) == before


def test_only_a_run_can_be_resumed(tmp_path):
    assert "no such folder" in refused("train", "--resume", "--out", tmp_path / "none")
    assert "not the folder of a training run" in refused("train", "--resume", "--out", tmp_path)


def test_out_is_a_file(files):
    for more in ([], ["--resume"]):
        assert f"{files['good.src']}: is a file" in refused("train", *SMALL, *more, "--out", files["good.src"])


def test_without_an_extra_its_name_is_given(monkeypatch, tmp_path):
    for name in ("sacrebleu", "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    message = refused("train", *SMALL, "--metric", "bleu", "--out", tmp_path / "run")
    assert "pip install -e '.[data]'" in message
    assert not (tmp_path / "run").exists()  # it was found before the training
