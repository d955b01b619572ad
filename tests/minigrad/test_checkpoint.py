"""Named arrays to a file and back; what a damaged file says; what a crash leaves."""

import json
import os
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import minigrad
from minigrad import checkpoint
from minigrad.checkpoint import CheckpointError, load_tensors, save_tensors

from tests.minigrad.ops.row import table

DRAW = np.random.default_rng(0)
ARRAYS = {
    "float64": DRAW.normal(size=(3, 4)),
    "float32": DRAW.normal(size=5).astype(np.float32),
    "float16": DRAW.normal(size=(2, 1, 2)).astype(np.float16),
    "int64": np.array([-(2**62), 2**62]),
    "bool": np.array([[True], [False]]),
    "0-d": np.array(1.5),
    "empty": np.zeros((0, 3), np.float32),
    "transposed": DRAW.normal(size=(3, 4)).T,
    "strided": np.arange(20)[::3],
    "broadcast": np.broadcast_to(np.float32([1, 2]), (3, 2)),
    "big-endian": np.arange(3, dtype=">i4"),
    "special": np.array([np.nan, np.inf, -0.0, 5e-324]),
}


def test_arrays_and_metadata_come_back_as_they_were_here_and_elsewhere(tmp_path):
    metadata = {"config": json.dumps({"d_model": 8}), "言語": "日本語\n", "empty": ""}
    given = {**ARRAYS, "a second name": ARRAYS["float64"]}
    save_tensors(tmp_path / "file", given, metadata)
    theirs = load_file(tmp_path / "file")
    save_file({name: array.copy() for name, array in theirs.items()}, tmp_path / "theirs", metadata)
    for file in ("file", "theirs"):
        arrays, found = load_tensors(tmp_path / file)
        assert (found, arrays.keys()) == (metadata, given.keys())
        for name, array in given.items():
            np.testing.assert_array_equal(theirs[name], array)
            np.testing.assert_array_equal(arrays[name], array, strict=array.dtype.isnative)
            assert arrays[name].dtype == array.dtype.newbyteorder("=")
            arrays[name].fill(0)  # writable, and not the file's memory


def test_tensors_of_any_device(tmp_path, device):
    tensor = minigrad.Tensor(ARRAYS["float64"], device=device, requires_grad=True)
    save_tensors(tmp_path / "file", {"weight": tensor, "view": tensor.detach().T})
    arrays, metadata = load_tensors(tmp_path / "file")
    assert metadata == {}
    np.testing.assert_array_equal([arrays["weight"], arrays["view"].T], [ARRAYS["float64"]] * 2)


def header(dtype, size, shape=(1,)):
    text = json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(text)) + text


def test_bfloat16_becomes_float32_without_rounding(tmp_path):
    expected = np.float32([[1.0, -2.5, 0.0], [np.inf, 2.0**-133, 3.140625]])
    halves = (expected.view(np.uint32) >> 16).astype("<u2")
    (tmp_path / "file").write_bytes(header("BF16", 12, (2, 3)) + halves.tobytes())
    arrays, _ = load_tensors(tmp_path / "file")
    assert arrays["a"].dtype == np.float32
    np.testing.assert_array_equal(arrays["a"], expected)
    arrays["a"].fill(0)  # writable
    (tmp_path / "file").write_bytes(header("BF16", 2, ()) + b"\x80\x3f")
    assert load_tensors(tmp_path / "file")[0]["a"].shape == ()


DAMAGE = {
    "empty": lambda raw: b"", "cut": lambda raw: raw[:-1], "a bit of a value": lambda raw: raw[:-5] + b"?" + raw[-4:],
    "a bit of a name": lambda raw: raw.replace(b'"weight"', b'"wdight"'),
    "another dtype": lambda raw: raw.replace(b"F64", b"I64"), "no dtype": lambda raw: header("F99", 1) + bytes(1),
    "a dtype that NumPy lacks": lambda raw: header("F8_E4M3", 1) + bytes(1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_or_foreign_file_is_named(damage, tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"weight": np.arange(10.0)})
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(CheckpointError, match=r"model\.safetensors: \S+"):
        load_tensors(path)


@pytest.mark.parametrize(("tensors", "metadata", "named"), table("""
    {"a": [1, 2]}                                   {}              "a must be .* got list"
    {"a": np.array(["x"])}                          {}              "a: .* dtype <U1"
    {"a": np.ma.masked_array([1.0], [True])}        {}              "a: the array has masked elements"
    {}                                              {"step": 3}     "metadata"
"""))
def test_what_cannot_be_saved_leaves_the_file_alone(tensors, metadata, named, tmp_path):
    path = tmp_path / "file"
    save_tensors(path, {"kept": np.ones(1)})
    with pytest.raises(TypeError, match=named):
        save_tensors(path, eval(tensors, {"np": np}), metadata)  # noqa: S307
    assert list(load_tensors(path)[0]) == ["kept"]


@pytest.mark.parametrize("function", ["safetensors.numpy.save_file", "minigrad.checkpoint.force_to_disk"])
def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(function, tmp_path, monkeypatch):
    path = tmp_path / "file"
    save_tensors(path, {"old": np.ones(1)})

    def fail(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(function, fail)
    with pytest.raises(OSError, match="No space left"):
        save_tensors(path, {"new": np.ones(1)})
    assert os.listdir(tmp_path) == ["file"]


def test_the_new_file_is_on_the_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    calls, replace, force = [], os.replace, checkpoint.force_to_disk
    monkeypatch.setattr(checkpoint.os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    monkeypatch.setattr(checkpoint, "force_to_disk", lambda p, f: (calls.append(p.name), force(p, f)))
    save_tensors(tmp_path / "file", {"a": np.ones(1)})
    assert calls[0].startswith(".file.")
    assert calls[1:] == ["replace", tmp_path.name]
