"""A plan for training on text: what suits its amount and the time, for every option that is not given.

What decides is how often a run sees its text. If it is seen many times, the model overfits before the time ends, and
dropout is worth more than size; if it is seen a few times, the time is the limit, and dropout wastes it. Each function
here is one rule with its reason; ``docs/translation.md`` has the measurements behind it.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from transformer.data.examples import fitting
from transformer.data.parallel_text import DataError, Pairs
from transformer.data.tokenizer import Tokenizer, build_tokenizers, load_tokenizer
from transformer.model import TransformerConfig
from transformer.training.memory import multiplications
from transformer.training.options import TrainingOptions
from transformer.training.recipes import RECIPES, Options, changed, model_config, training_options
from transformer.training.threads import SMALL, usable_threads

VALIDATIONS = 14  # of a run, so that a machine of half or twice the expected speed has 8 to 20 or so
FIRST_LOOK = 1 / 3  # expected minutes until the first validation
LONGEST_RUN = 60.0  # expected minutes of a run whose length nobody gives
WARMUP = 400  # updates, or a tenth of the run if that is less
RATE = 50e9  # multiplications and additions a second, for each thread
LAYER = 0.002  # seconds that an update spends in a layer beside them

NAMES = {"train", "valid", "source_tokenizer", "target_tokenizer", "tokens", "vocab_size", "shared_vocab", "preset",
         "layers", *(option.name for kind in (TransformerConfig, TrainingOptions) for option in fields(kind))}


class Amount(NamedTuple):
    """How much text there is: its pairs, and the tokens of each side, with one for the end of every sentence."""

    pairs: int
    source: int
    target: int


class Expected(NamedTuple):
    """The length of a run, by its limits and by the rate of an ordinary machine."""

    updates: float
    passes: float
    minutes: float


@dataclass(frozen=True)
class Plan:
    """What `train` takes for a run on text.

    Attributes:
        pairs: the training pairs without those that are too long.
        tokenizers: of source and target; the same object twice if the vocabulary is shared.
        amount: of the text in `pairs`.
        options: the given options and the planned ones, which give the plan again.
        config, training: the model's and the training's options.
        expected: the length of the run.
    """

    pairs: Pairs
    tokenizers: tuple[Tokenizer, Tokenizer]
    amount: Amount
    options: Options
    config: TransformerConfig
    training: TrainingOptions
    expected: Expected


def plan_text(pairs: Pairs, given: Options, threads: int | None = None) -> Plan:
    """The plan for training on `pairs`.

    Args:
        pairs: (source, target) texts.
        given: what is not to be planned, by the names of `TransformerConfig` and `TrainingOptions`; and "tokens"
            ("bpe"), "vocab_size", "shared_vocab", "source_tokenizer" and "target_tokenizer" (files), "layers",
            "preset". Most often ``{"minutes": 30}``.
        threads: how many the machine has for the run; None: all cores, at most 8.

    Raises:
        DataError: there are no pairs, or none is short enough; a tokenizer's file cannot be used.
        ImportError: byte pairs need the package tokenizers.
        ValueError: an option out of range.
    """
    if unknown := given.keys() - NAMES:
        raise ValueError(f"plan_text: there is no option {', '.join(sorted(unknown))}")
    if not pairs:
        raise DataError("plan_text: there are no pairs to train on")
    options, tokenizers = vocabularies(pairs, given)
    limit = model_config(changed(RECIPES["text"], given), *tokenizers).max_length
    chosen, examples = fitting(pairs, *tokenizers, limit)
    if not chosen:
        raise DataError(f"no pair of the training text has at most {limit:,} tokens a side; raise --max-length")
    source, target = (int(side[~examples.too_long].sum(dtype=np.int64))
                      for side in (examples.source_lengths, examples.steps))
    amount = Amount(len(chosen), source, target)
    return complete(options, chosen, tokenizers, amount, threads or usable_threads())


def sides(pairs: Pairs) -> tuple[Iterable[str], Iterable[str]]:
    """The sources and the targets."""
    return (source for source, _ in pairs), (target for _, target in pairs)


def vocabularies(pairs: Pairs, given: Options) -> tuple[Options, tuple[Tokenizer, Tokenizer]]:
    """The options of the vocabularies beside the given ones, and the tokenizers: those of files, or trained ones."""
    files = given.get("source_tokenizer"), given.get("target_tokenizer")
    loaded = {file: load_tokenizer(file) for file in files if file}
    if all(files):
        return {"shared_vocab": len(loaded) == 1} | given, (loaded[files[0]], loaded[files[1]])
    options: Options = {"tokens": "bpe", "shared_vocab": not any(files) and same_script(*sides(pairs))} | given
    if options["tokens"] == "bpe" and "vocab_size" not in given:
        texts = [chain(*sides(pairs))] if options["shared_vocab"] else sides(pairs)
        options["vocab_size"] = max(map(vocabulary_size, texts))
    trained = build_tokenizers(options["tokens"], *sides(pairs), options["shared_vocab"], options.get("vocab_size"))
    return options, (loaded.get(files[0], trained[0]), loaded.get(files[1], trained[1]))


# --------------------------------------------------------------------------- before the text is cut into tokens


def vocabulary_size(texts: Iterable[str]) -> int:
    """The size of a byte-pair vocabulary for these texts: 3,000 at 25,000 words, 4,400 at 500,000, 6,000 at 6 million.

    It grows slowly: more text lets rarer tokens be learnt, but each of them makes every update slower. Where no blanks
    divide the text, six characters count as a word. Each character beyond ASCII takes a token to be in one piece; with
    thousands of them, as in Chinese, they and as many tokens of several characters decide.
    """
    words, characters = 0, Counter[str]()
    for text in texts:
        words += max(len(text.split()), len(text) // 6)
        characters.update(text)
    pieces = sum(count > 1 and not character.isascii() for character, count in characters.items())
    return max(300, min(int(round(max(850 * words ** (1 / 8), 2 * pieces), -2)), 16_000))


def same_script(sources: Iterable[str], targets: Iterable[str]) -> bool:
    """Whether both sides are written in one script, so that names and words in common can share tokens."""
    return script(sources) == script(targets) != ""


def script(texts: Iterable[str]) -> str:
    """The script that nine tenths of the letters in the first 20,000 lines are of; "" if there is none."""
    scripts = Counter[str]()
    for letter, count in Counter(chain.from_iterable(islice(texts, 20_000))).items():
        if letter.isalpha():
            scripts[unicodedata.name(letter, "?").split()[0]] += count
    return next((name for name, count in scripts.items() if count >= 0.9 * scripts.total()), "")


# --------------------------------------------------------------------------- the model and the run


def complete(given: Options, pairs: Pairs, tokenizers: tuple[Tokenizer, Tokenizer], amount: Amount, threads: int
             ) -> Plan:
    """The plan: the given options with a planned value for each other one that the recipe leaves open.

    Args:
        given: options as `changed` takes them.
        pairs: the training text.
        tokenizers: of both sides, whose sizes the last layer has.
        amount: of the training text.
        threads: the threads that the machine has for the run.
    """
    options: Options = {"batch_tokens": batch_tokens(amount)} | given
    if "preset" not in given:
        d_model = given.get("d_model") or width(amount, threads * given.get("minutes", LONGEST_RUN))
        heads = d_model // 32 if d_model % 32 == 0 else 1
        options = {"d_model": d_model, "num_heads": heads, "d_ff": 4 * d_model, "layers": 3} | options
    config = model_config(changed(RECIPES["text"], options), *tokenizers)
    if not given.keys() & {"steps", "epochs", "minutes"}:
        longest = {"minutes": LONGEST_RUN, "epochs": most_passes(amount)} | options
        options["steps"] = round(expected(longest, amount, config, threads).updates)
    run = expected(options, amount, config, threads)
    first = max(1, round(run.updates * FIRST_LOOK / run.minutes))
    options = {
        "dropout": dropout(run.passes),
        "learning_rate": learning_rate(config),
        "warmup_steps": max(1, round(min(WARMUP, run.updates / 10))),
        "valid_every": max(1, round(run.updates / VALIDATIONS)),
    } | options
    if first < options["valid_every"] / 2:
        options = {"valid_first": first} | options
    whole = changed(RECIPES["text"], options)
    return Plan(pairs, tokenizers, amount, options, model_config(whole, *tokenizers), training_options(whole), run)


def batch_tokens(amount: Amount) -> int:
    """1,024 tokens, or 2,048 from 20,000 pairs on.

    Little text gives few updates an epoch, and a small batch gives more of them; with more text the gain in speed, a
    sixth on two threads, is worth more.
    """
    return 1024 if amount.pairs < 20_000 else 2048


def width(amount: Amount, core_minutes: float) -> int:
    """The features of the model, a multiple of 64 from 64 to 512.

    Parameters grow with the square of the width, and the useful number of them with about the square root of the tokens
    that they are trained on. Two numbers limit these: the text, beyond which a larger model overfits sooner, and the
    time, in which a larger model sees less.
    """
    by_text = 128 * (amount.target / 30_000) ** 0.25
    by_time = 128 * (core_minutes / 15) ** 0.25
    return min(max(64, round(min(by_text, by_time) / 64) * 64), 512)


def dropout(passes: float) -> float:
    """0 for up to 3 passes over the text, which learn nothing by heart; 0.3 for 90, and at most 0.4."""
    return round(min(max(0.0, 0.3 * math.log(max(passes, 1) / 3) / math.log(30)), 0.4), 2)


def most_passes(amount: Amount) -> float:
    """The passes over the text after which more bring little: 100 at 5,000 pairs, 28 at 50,000, 11 at 300,000."""
    return min(max(3.0, 100 * (amount.pairs / 5000) ** -0.55), 150.0)


def learning_rate(config: TransformerConfig) -> float:
    """2e-3 for 128 features, and for others with the inverse square root (Vaswani et al. 2017, equation 3)."""
    return round(2e-3 * math.sqrt(128 / config.d_model), 5)


# --------------------------------------------------------------------------- how long it takes


def expected(options: Options, amount: Amount, config: TransformerConfig, threads: int) -> Expected:
    """The length of a run that ends at the first of its steps, epochs and minutes.

    An update takes three times as long as the products of its forward at `RATE`, and `LAYER` for each layer. Neither is
    measured, so that a plan is a function of the text and the options.
    """
    # Batches have sentences of like length, and are filled to nine tenths.
    batch = 0.9 * options["batch_tokens"] * options.get("accumulate", 1)
    epoch = max(1, math.ceil(max(amount.source, amount.target) / batch))
    encoder, decoder = multiplications(config)
    threads = threads if config.d_model > SMALL else 1
    products = 6 * (amount.source * encoder + amount.target * decoder) / (RATE * threads * epoch)  # seconds an update
    minutes = (products + LAYER * (config.num_encoder_layers + config.num_decoder_layers)) / 60
    limits = {"steps": 1, "epochs": epoch, "minutes": 1 / minutes}
    updates = min(options[name] * each for name, each in limits.items() if name in options)
    return Expected(updates, updates / epoch, updates * minutes)
