"""Data for sequence-to-sequence training: vocabularies, tokenizers, generated tasks, parallel text, batches.

Everything here is text, integers and NumPy arrays on the host; nothing depends on the engine. The way from
text to a training step, one file each:

    tasks.py, dates.py  or  parallel_text.py  pairs of strings
    vocabulary.py, tokenizer.py               strings to token ids and back
    examples.py                               the token ids of all pairs, in memory or in a file
    batches.py                                examples of like length, as padded arrays; their order in an epoch

Text may be larger than memory: `ParallelText` reads its files in each loop over it, and a training holds some ten bytes
for each pair.
"""

from transformer.data.batches import Batch, batches_by_length, collate, encode_pairs
from transformer.data.parallel_text import DataError, ParallelText, hold_out, read_parallel
from transformer.data.tasks import TASKS, Task, get_task
from transformer.data.tokenizer import (
    BytePairTokenizer,
    CharacterTokenizer,
    HuggingFaceTokenizer,
    Tokenizer,
    WordTokenizer,
    build_tokenizers,
    load_tokenizer,
    tokenizer_from_json,
)
from transformer.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "TASKS",
    "UNK",
    "Batch",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "DataError",
    "HuggingFaceTokenizer",
    "ParallelText",
    "Task",
    "Tokenizer",
    "Vocabulary",
    "WordTokenizer",
    "batches_by_length",
    "build_tokenizers",
    "collate",
    "encode_pairs",
    "get_task",
    "hold_out",
    "load_tokenizer",
    "read_parallel",
    "tokenizer_from_json",
]
