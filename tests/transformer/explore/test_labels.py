"""The names of rows and columns."""

from transformer.explore.labels import names, row_names


def test_equal_tokens_are_told_apart():
    assert names(["2", "0", "2", "1", "<eos>"]) == ["2₁", "0", "2₂", "1", "<eos>"]
    assert names(["x"] * 12)[-1] == "x₁₂"
    assert names([" ", "\u3000", "\t", "", "<pad>", "<pad>"]) == ["␣₁", "␣₂", "⇥", "(empty)", "<pad>", "<pad>"]


def test_a_decoders_row_has_the_token_read_and_the_one_to_be_written():
    """What a row writes has the same name where it is read, though the last token is never read."""
    assert row_names(["<bos>", "0", "8"], ["0", "8", "0"]) == ["<bos> → 0₁", "0₁ → 8", "8 → 0₂"]
    assert row_names(["0", "8", "0"], ["8", "0", ""]) == ["0₁ → 8", "8 → 0₂", "0₂"]
    assert row_names(["<bos>", "1", "<eos>", "<pad>"], ["1", "<eos>", "<pad>", "<pad>"]) == [
        "<bos> → 1", "1 → <eos>", "<eos>", "<pad>"]
    assert row_names(["<bos>", "9"], ["8", "8"]) == ["<bos> → 8", "9 → 8"]  # to be written, but never read
