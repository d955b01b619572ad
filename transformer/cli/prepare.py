"""From the options of ``train`` to a run: its text, vocabularies, configuration and plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from transformer.cli import plan_lines, sources
from transformer.data.examples import fitting
from transformer.data.extras import require
from transformer.data.parallel_text import DataError, Pairs
from transformer.data.tasks import get_task
from transformer.data.tokenizer import Tokenizer, build_tokenizers
from transformer.distributed import Alone
from transformer.model import Transformer, TransformerConfig
from transformer.training.checkpoints import Run
from transformer.training.memory import require_memory_for
from transformer.training.messages import counted
from transformer.training.options import TrainingOptions
from transformer.training.plan import plan_text, sides
from transformer.training.recipes import RECIPES, Options, changed, model_config, options_of, training_options
from transformer.training.run_folder import RunError
from transformer.training.threads import suitable_threads, usable_threads

OF_DATA = ("task", "train_count", "valid_count", "tokens", "source_tokenizer", "target_tokenizer", "vocab_size",
           "shared_vocab", "preset")


@dataclass
class Prepared:
    """A run with its pairs, and what is to be said of it before it begins, line by line."""

    run: Run
    train: Pairs
    valid: Pairs
    said: list[str] = field(default_factory=list)


def begin(given: dict[str, Any], out: Path, device: str, ranks: Alone) -> Prepared:
    """A new run."""
    _check_data(given)
    with _mistakes():
        return (_of_text(given, out, device, ranks) if "train" in given else
                _of_task(given["task"], given, device, ranks))


def _of_task(task: str, given: dict[str, Any], device: str, ranks: Alone) -> Prepared:
    recipe = changed(RECIPES[task], given)
    options = training_options(recipe)
    shared = given.get("shared_vocab", _check_memory(recipe).share_embeddings)
    kind, size = given.get("tokens", get_task(task).tokenizer_kind), given.get("vocab_size")
    data = {"task": task, "train_count": recipe["train_count"], "valid_count": recipe["valid_count"],
            "seed": options.seed, "tokens": kind, "vocab_size": size, "shared_vocab": shared,
            "preset": recipe["preset"]}
    text = sources.read(data)
    tokenizers = build_tokenizers(kind, *sides(text.train), shared, size)
    said = (f"{_pairs(text.train, text.valid)}; vocabularies of "
            f"{' and '.join(f'{len(tokenizer.vocabulary):,}' for tokenizer in tokenizers)} tokens")
    config = model_config(recipe, *tokenizers, share_embeddings=shared)
    return Prepared(_run(config, options, tokenizers, data, device, ranks), text.train, text.valid, [said])


def _of_text(given: dict[str, Any], out: Path, device: str, ranks: Alone) -> Prepared:
    """A run by a plan; what is missing for it is told before anything is read."""
    files = given.get("source_tokenizer"), given.get("target_tokenizer")
    if given.get("tokens", "bpe") == "bpe" or any(files):
        require("tokenizers", "a tokenizer.json" if any(files) else "byte-pair encoding (--tokens words does without)")
    if given.get("valid_metric", "bleu") == "bleu":
        require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
    _check_memory(changed(RECIPES["text"], given))
    text = sources.read(sources.files(given))
    threads = ranks.size * (given.get("threads") or usable_threads(ranks.local_size))
    plan = plan_text(text.train, given, ranks.broadcast(threads))
    valid, unseen = fitting(text.valid, *plan.tokenizers, plan.config.max_length)
    if not valid:
        raise DataError(f"no pair of the validation text has at most {plan.config.max_length:,} tokens a side; raise "
                        "--max-length")
    data = sources.files(given) | {name: plan.options[name] for name in OF_DATA if name in plan.options}
    run = _run(plan.config, plan.training, plan.tokenizers, data, device, ranks)
    parameters = Transformer(run.config).num_parameters()
    return Prepared(run, plan.pairs, valid, list(plan_lines.lines(text, plan, valid, unseen, parameters, out)))


def take_up(out: Path, run: Run, given: dict[str, Any], options: dict[str, str]) -> Prepared:
    """A resumed run after the given changes; `options` has the option of each parameter."""
    earlier = run.options
    with _mistakes():
        run.options = training_options(changed(earlier.to_json(), given))
    if "task" not in run.data and "train" not in run.data:
        raise RunError(f"{out}: the run has no description of its data; resume it with the program that began it")
    model = options_of(TransformerConfig, changed({}, given))
    different = [name for name in OF_DATA if name in given and given[name] != run.data.get(name)]
    different += [name for name in ("train", "valid") if name in given and name not in run.data]
    different += [name for name in model if model[name] != getattr(run.config, name)]
    different += run.options.changed_from(earlier)
    if different:
        names = ", ".join(options[name] for name in different)
        raise RunError(f"{out}: a resumed run may not change {names}; start a new one in another folder")
    run.data |= sources.files(given)
    piped = [side for side in ("train", "valid") if "-" in run.data.get(side, ()) and side not in given]
    if piped:
        raise RunError(f"{out}: the text came from standard input; give it again, with  --{piped[0]} -  or its file")
    text = sources.read(run.data)
    train, valid = text.train, text.valid
    if "task" not in run.data:
        train, valid = (fitting(side, run.source_tokenizer, run.target_tokenizer, run.config.max_length)[0]
                        for side in (train, valid))
    return Prepared(run, train, valid, [_pairs(train, valid)])


def _pairs(train: Pairs, valid: Pairs) -> str:
    return f"{counted(len(train), 'training pair')}, {counted(len(valid), 'validation pair')}"


def _check_data(given: dict[str, Any]) -> None:
    """UsageError unless the options name a task, or text for training."""
    if ("task" in given) == ("train" in given):
        raise click.UsageError("give one of  --task NAME  and  --train SRC TGT")
    if "train" in given and given.keys() & {"train_count", "valid_count"}:
        raise click.UsageError("--train-count and --valid-count are for generated tasks; files are used whole")
    files = given.keys() & {"source_tokenizer", "target_tokenizer"}
    if "task" in given and (files or "valid" in given):
        raise click.UsageError("--valid, --source-tokenizer and --target-tokenizer are for text files")
    if len(files) == 2 and given.keys() & {"tokens", "vocab_size", "shared_vocab"}:
        raise click.UsageError("the tokenizers' files leave nothing for --tokens, --vocab-size and --shared-vocab")
    for side in ("train", "valid"):
        if len(given.get(side, ())) > 2:
            raise click.UsageError(f"--{side} takes one table, or two files, got {len(given[side])}")


def _check_memory(recipe: Options) -> TransformerConfig:
    """The recipe's model for the smallest vocabulary; MemoryError now, before the data is prepared."""
    preset = getattr(TransformerConfig, recipe["preset"])
    config: TransformerConfig = preset(8, 8, **options_of(TransformerConfig, recipe))
    require_memory_for(config)
    return config


def _run(config: TransformerConfig, options: TrainingOptions, tokenizers: tuple[Tokenizer, Tokenizer],
         data: dict[str, Any], device: str, ranks: Alone) -> Run:
    if options.threads is None and device == "cpu":
        threads = suitable_threads(config, options.batch_tokens // ranks.size, ranks.local_size)
        options = replace(options, threads=ranks.broadcast(threads))
    return Run(config, *tokenizers, data, options)


@contextmanager
def _mistakes() -> Iterator[None]:
    """Report a ValueError inside the block as a usage error."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error
