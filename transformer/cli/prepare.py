"""From the options of ``train`` to a run: its text, vocabularies, configuration and plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from transformer.cli import sources
from transformer.cli.command import command_line, flags, mistakes
from transformer.data.examples import Examples, fitting
from transformer.data.extras import require
from transformer.data.parallel_text import DataError, Pairs
from transformer.data.tasks import get_task
from transformer.data.tokenizer import build_tokenizers
from transformer.data.vocabulary import UNK
from transformer.distributed import Alone
from transformer.model import Transformer, TransformerConfig
from transformer.training.checkpoints import Run
from transformer.training.memory import require_memory_for
from transformer.training.messages import counted
from transformer.training.options import TrainingOptions
from transformer.training.plan import Plan, plan_text, sides
from transformer.training.recipes import RECIPES, Options, changed, model_config, options_of, training_options
from transformer.training.run_folder import RunError
from transformer.training.threads import A_GPU, usable_threads

FEW = 3000  # pairs with which no model of this kind learns to translate what it has not seen
MANY_UNKNOWN = 0.02  # the share of unknown tokens beyond which the vocabulary does not suit the text
OF_DATA = ("task", "train_count", "valid_count", "tokens", "source_tokenizer", "target_tokenizer", "vocab_size",
           "shared_vocab", "preset")


@dataclass
class Prepared:
    """A run with its pairs, and what is to be said of it before it begins, line by line."""

    run: Run
    train: Pairs
    valid: Pairs
    said: list[str]


def begin(given: dict[str, Any], out: Path, ranks: Alone, device: str) -> Prepared:
    """A new run, of the options that are given, for a device."""
    of_text = "train" in given
    if ("task" in given) == of_text:
        raise click.UsageError("give one of  --task NAME,  --train TABLE  and  --train SRC TGT")
    files = given.keys() & {"source_tokenizer", "target_tokenizer"}
    for applies, excluded, what in (
            (of_text, {"train_count", "valid_count"}, "text files, which are used whole"),
            (not of_text, files | {"valid"}, "a generated task"),
            (len(files) == 2, {"tokens", "vocab_size", "shared_vocab"}, "the files of two tokenizers")):
        if applies and (misplaced := given.keys() & excluded):
            raise click.UsageError(f"{flags(misplaced)}: not for {what}")
    with mistakes():  # those of the options come before the data, which may take minutes
        recipe = changed(RECIPES[given.get("task", "text")], given)
        training_options({"steps": 1} | recipe)
        smallest: TransformerConfig = getattr(TransformerConfig, recipe["preset"])(
            8, 8, **options_of(TransformerConfig, recipe))
        require_memory_for(smallest)
        return _of_text(given, out, ranks, device) if of_text else _of_task(recipe, smallest.share_embeddings)


def _of_task(recipe: Options, shared: bool) -> Prepared:
    training = training_options(recipe)
    data = {"seed": training.seed, "tokens": get_task(recipe["task"]).tokenizer_kind, "vocab_size": None,
            "shared_vocab": shared, **_of_data(recipe)}
    text = sources.read(data)
    tokenizers = build_tokenizers(data["tokens"], *sides(text.train), data["shared_vocab"], data["vocab_size"])
    run = Run(model_config(recipe, *tokenizers), tokenizers, data, training)
    return _counted(run, text.train, text.valid)


def _of_text(given: dict[str, Any], out: Path, ranks: Alone, device: str) -> Prepared:
    """A run by a plan; what is missing for it is told before anything is read."""
    files = given.get("source_tokenizer"), given.get("target_tokenizer")
    if given.get("tokens", "bpe") == "bpe" or any(files):
        require("tokenizers", "a tokenizer.json" if any(files) else "byte-pair encoding (--tokens words does without)")
    if given.get("valid_metric", "bleu") == "bleu":
        require("sacrebleu", "validating by BLEU (--metric exact_match does without)")
    paths = sources.files(given)
    text = sources.read(paths, given)
    of_rank = given.get("threads") or usable_threads(ranks.local_size) if device == "cpu" else A_GPU
    plan = plan_text(text.train, given, ranks.first(lambda: ranks.size * of_rank))
    valid, unseen = fitting(text.valid, *plan.tokenizers, plan.config.max_length)
    if not valid:
        raise DataError(f"no pair of the validation text has at most {plan.config.max_length:,} tokens a side; raise "
                        "--max-length")
    run = Run(plan.config, plan.tokenizers, paths | _of_data(plan.options), plan.training)
    return Prepared(run, plan.pairs, valid, list(lines_of_plan(text, plan, valid, unseen, out)))


def _of_data(options: Options) -> dict[str, Any]:
    """The options that the data and the vocabularies follow from."""
    return {name: options[name] for name in OF_DATA if name in options}


def lines_of_plan(text: sources.Text, plan: Plan, valid: Pairs, unseen: Examples, out: Path) -> Iterator[str]:
    """The plan in five lines, and a line for each thing about the text that its owner should know.

    Args:
        text: all pairs.
        plan: of its training pairs.
        valid: its validation pairs that are not too long.
        unseen: the token ids of all its validation pairs.
        out: the folder of the run.
    """
    config, training, amount, expected = plan.config, plan.training, plan.amount, plan.expected
    too_long = len(text.train) - len(plan.pairs) + len(text.valid) - len(valid)
    tokens = [token for example in unseen for ids in example for token in ids]
    unknown = tokens.count(UNK) / len(tokens)
    different = {*valid}
    twice = len(different.intersection(text.train))
    yield (f"text      {counted(amount.pairs, 'pair')}: {amount.source:,} source and {amount.target:,} target tokens; "
           f"left out: {text.empty:,} with an empty side, {too_long:,} of more than {config.max_length:,} tokens")
    held_out = "" if "valid" in plan.options else " of the text, held out by source"
    yield (f"validate  {counted(len(valid), 'pair')}{held_out}; "
           f"{unknown:.1%} of their tokens are unknown, {twice:,} of these pairs also stand in training")
    shared = plan.tokenizers[0] is plan.tokenizers[1]
    vocabulary = (f"{config.target_vocab_size:,} tokens for both sides" if shared else
                  f"{config.source_vocab_size:,} and {config.target_vocab_size:,} tokens")
    parameters = Transformer(config).num_parameters()
    disk = parameters * 4 * (training.keep + 3) / 1e6  # the weights of each, and both moments of the latest
    yield (f"model     {config.num_encoder_layers}+{config.num_decoder_layers} layers of {config.d_model} features, "
           f"{vocabulary}: {parameters:,} parameters; its checkpoints take {disk:,.0f} MB")
    yield (f"training  about {counted(round(expected.updates), 'update')} of {training.batch_tokens:,} tokens, which "
           f"go {expected.passes:,.1f} times through the text in about {expected.minutes:,.1f} minutes; dropout "
           f"{config.dropout:g}")
    yield f"the same  {command_line(plan.options | {'out': out})}"
    if amount.pairs < FEW:
        few = counted(amount.pairs, "pair is", "pairs are")
        yield (f"note: {few} too few to translate other sentences: with fewer than {FEW:,} a model learns those it "
               "sees by heart; use them to try out the set-up, or for a narrow domain")
    if twice == len(different):
        yield "note: all validation pairs also stand in training: they say nothing of how well other text is translated"
    if unknown > MANY_UNKNOWN:
        yield "note: many tokens of the validation text are unknown; --tokens bpe knows all, and parts punctuation"


def take_up(out: Path, run: Run, given: dict[str, Any]) -> Prepared:
    """A resumed run after the given changes."""
    earlier = run.options
    with mistakes():
        training = training_options(changed(vars(earlier), given))
    wanted = changed({}, given) | vars(training)
    found = run.data | vars(run.config) | vars(earlier)
    free = {*TrainingOptions.MAY_CHANGE, "layers", *(sources.TEXTS if "train" in run.data else ())}
    different = [name for name in wanted if name not in free and wanted[name] != found.get(name)]
    if different:
        raise RunError(f"{out}: a resumed run may not change {flags(different)}; start a new one in another folder")
    run.options = training
    run.data |= sources.files(given)
    text = sources.read(run.data, given)
    pairs = [text.train, text.valid]
    if "train" in run.data:
        pairs = [fitting(side, *run.tokenizers, run.config.max_length)[0] for side in pairs]
    return _counted(run, *pairs)


def _counted(run: Run, train: Pairs, valid: Pairs) -> Prepared:
    return Prepared(run, train, valid, [
        f"{counted(len(train), 'training pair')}, {counted(len(valid), 'validation pair')}"])
