"""From the options of ``train`` to a run: its text, vocabularies, configuration and plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import click
import numpy as np

from transformer.cli import plan_lines, sources
from transformer.data.extras import require
from transformer.data.parallel_text import DataError
from transformer.data.tasks import get_task
from transformer.data.tokenizer import (
    BytePairTokenizer,
    Tokenizer,
    build_tokenizers,
    load_tokenizer,
)
from transformer.distributed import Alone
from transformer.model import Transformer, TransformerConfig
from transformer.training import plan
from transformer.training.checkpoints import Run
from transformer.training.memory import require_memory
from transformer.training.options import TrainingOptions
from transformer.training.out_of_memory import ModelDoesNotFit, least_memory, memory_or
from transformer.training.pairs import fitting
from transformer.training.recipes import RECIPES, Recipe, changed_training, model_changes
from transformer.training.run_folder import RunError
from transformer.training.threads import suitable_threads, usable_threads

OF_DATA = ("task", "train_count", "valid_count", "tokens", "source_tokenizer", "target_tokenizer", "vocab_size",
           "shared_vocab", "preset")


@dataclass
class Prepared:
    """A run with its pairs, and what is to be said of it before it begins, line by line."""

    run: Run
    train: sources.Pairs
    valid: sources.Pairs
    said: list[str] = field(default_factory=list)


def begin(given: dict[str, Any], out: Path, device: str, ranks: Alone) -> Prepared:
    """A new run."""
    _check_data(given)
    with _mistakes():
        return (_of_text(given, out, device, ranks) if "train" in given else
                _of_task(given["task"], given, device, ranks))


def _of_task(task: str, given: dict[str, Any], device: str, ranks: Alone) -> Prepared:
    recipe = RECIPES[task].changed(given)
    shared = given.get("shared_vocab", _check_memory(recipe, device).share_embeddings)
    kind, size = given.get("tokens", get_task(task).tokenizer_kind), given.get("vocab_size")
    _check_size(kind, size)
    data = recipe.data(task, recipe.options.seed)
    data |= {"tokens": kind, "vocab_size": size, "shared_vocab": shared, "preset": recipe.preset}
    text = sources.read(data)
    tokenizers = build_tokenizers(kind, *_sides(text.train), shared, size)
    said = (f"{len(text.train):,} training pairs, {len(text.valid):,} validation pairs; vocabularies of "
            f"{' and '.join(f'{len(tokenizer.vocabulary):,}' for tokenizer in tokenizers)} tokens")
    return Prepared(_run(recipe, tokenizers, shared, data, device, ranks), text.train, text.valid, [said])


def _of_text(given: dict[str, Any], out: Path, device: str, ranks: Alone) -> Prepared:
    """First the vocabularies, which say how many tokens there are, and then the plan for so many."""
    files = given.get("source_tokenizer"), given.get("target_tokenizer")
    options = {"tokens": "bpe"} | given
    if options["tokens"] == "bpe" or any(files):
        require("tokenizers", "byte-pair encoding (--tokens words does without)")
    if given.get("valid_metric", "bleu") == "bleu":
        require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
    _check_memory(RECIPES["text"].changed(given), device)
    text = sources.read(sources.files(given))
    options.setdefault("shared_vocab", files[0] == files[1] if any(files) else plan.same_script(*_sides(text.train)))
    if options["tokens"] == "bpe" and not all(files):
        sides = [chain(*_sides(text.train))] if options["shared_vocab"] else _sides(text.train)
        options.setdefault("vocab_size", max(map(plan.vocabulary_size, sides)))
    _check_size(options["tokens"], options.get("vocab_size"))
    tokenizers = _tokenizers(text, files, options)
    limit = RECIPES["text"].changed(given).config(*tokenizers, share_embeddings=False).max_length
    (train, examples), (valid, unseen) = (fitting(side, *tokenizers, limit) for side in (text.train, text.valid))
    if not train or not valid:
        raise DataError(f"no pair of the {'validation' if train else 'training'} text has at most {limit:,} tokens a "
                        "side; raise --max-length")
    lengths = [side[~examples.too_long].astype(np.int64) for side in (examples.source_lengths, examples.steps)]
    amount = plan.Amount(len(train), *(int(side.sum()) for side in lengths))
    threads = usable_threads(ranks.local_size) * ranks.size
    options = plan.complete(options, amount, tokenizers, RECIPES["text"], threads)
    recipe = RECIPES["text"].changed(options)
    data = sources.files(given) | {name: options[name] for name in OF_DATA if name in options}
    run = _run(recipe, tokenizers, options["shared_vocab"], data, device, ranks)
    with memory_or(ModelDoesNotFit()):
        parameters = Transformer(run.config).num_parameters()
    expected = plan.expected(options, amount, run.config, threads)
    said = plan_lines.lines(text, (examples, unseen), amount, run, parameters, expected, options, out)
    return Prepared(run, train, valid, list(said))


def take_up(out: Path, run: Run, given: dict[str, Any], options: dict[str, str]) -> Prepared:
    """A resumed run after the given changes; `options` has the option of each parameter."""
    earlier = TrainingOptions.from_json(run.training)
    with _mistakes():
        training = changed_training(earlier, given)
    if not sources.is_described(run.data):
        run.data |= _describe(out, given, earlier)
    model = model_changes(given)
    changed = [name for name in OF_DATA if name in given and given[name] != run.data.get(name)]
    changed += [name for name in ("train", "valid") if name in given and name not in run.data]
    changed += [name for name in model if model[name] != getattr(run.config, name)]
    changed += training.changed_from(earlier)
    if changed:
        names = ", ".join(options[name] for name in changed)
        raise RunError(f"{out}: a resumed run may not change {names}; start a new one in another folder")
    run.training = training.to_json()
    run.data |= sources.files(given)
    text = sources.read(run.data)
    train, valid = text.train, text.valid
    if "task" not in run.data:
        train, valid = (fitting(side, run.source_tokenizer, run.target_tokenizer, run.config.max_length)[0]
                        for side in (train, valid))
    return Prepared(run, train, valid, [f"{len(train):,} training pairs, {len(valid):,} validation pairs"])


def _describe(out: Path, given: dict[str, Any], options: TrainingOptions) -> dict[str, Any]:
    """The description of the data from the options, for a run without one; `restore` compares the pairs."""
    if not given.keys() & {"task", "train", "valid"}:
        raise RunError(f"{out}: the run has no description of its data; resume it with the program that began it, or "
                       "name the same data:  --task NAME  or  --train SRC TGT --valid SRC TGT")
    _check_data(given)
    return RECIPES[given["task"]].changed(given).data(given["task"], options.seed) if "task" in given else {}


def _check_data(given: dict[str, Any]) -> None:
    """UsageError unless the options name a task, or text for training."""
    if ("task" in given) == ("train" in given):
        raise click.UsageError("give one of  --task NAME  and  --train SRC TGT")
    if "train" in given and given.keys() & {"train_count", "valid_count"}:
        raise click.UsageError("--train-count and --valid-count are for generated tasks; files are used whole")
    for side in ("train", "valid"):
        if len(given.get(side, ())) > 2:
            raise click.UsageError(f"--{side} takes one table, or two files, got {len(given[side])}")


def _check_memory(recipe: Recipe, device: str) -> TransformerConfig:
    """The recipe's model for the smallest vocabulary; ModelDoesNotFit now, before the data is prepared."""
    config: TransformerConfig = getattr(TransformerConfig, recipe.preset)(8, 8, **recipe.model)
    with memory_or(ModelDoesNotFit()):
        require_memory(least_memory(config, device))
    return config


def _check_size(kind: str, size: int | None) -> None:
    if kind == "bpe" and size is not None and size < BytePairTokenizer.SMALLEST_SIZE:
        raise click.UsageError(f"--vocab-size {size} is too small for --tokens bpe: 256 bytes and 4 special tokens "
                               f"need {BytePairTokenizer.SMALLEST_SIZE}")


def _tokenizers(text: sources.Text, files: tuple[str | None, str | None], options: dict[str, Any]
                ) -> tuple[Tokenizer, Tokenizer]:
    """Those of the files, and trained ones for the others."""
    if files[0] and files[0] == files[1]:
        both = load_tokenizer(files[0])
        return both, both
    if not all(files):
        trained = build_tokenizers(options["tokens"], *_sides(text.train), options["shared_vocab"],
                                   options.get("vocab_size"))
    source, target = (load_tokenizer(file) if file else trained[side] for side, file in enumerate(files))
    return source, target


def _run(recipe: Recipe, tokenizers: tuple[Tokenizer, Tokenizer], shared: bool, data: dict[str, Any], device: str,
         ranks: Alone) -> Run:
    config, options = recipe.config(*tokenizers, share_embeddings=shared), recipe.options
    if options.threads is None and device == "cpu":
        threads = suitable_threads(config, options.batch_tokens // ranks.size, ranks.local_size)
        options = replace(options, threads=ranks.broadcast(threads))
    return Run(config, *tokenizers, data, options.to_json())


def _sides(pairs: sources.Pairs) -> tuple[Iterable[str], Iterable[str]]:
    return (source for source, _ in pairs), (target for _, target in pairs)


@contextmanager
def _mistakes() -> Iterator[None]:
    """Report a ValueError inside the block as a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error
