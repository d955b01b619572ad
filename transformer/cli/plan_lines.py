"""The plan of a run on text in five lines, and a line for each thing about the text that its owner should know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from transformer.cli.command import command_line
from transformer.cli.sources import Text
from transformer.data.examples import Examples
from transformer.data.parallel_text import Pairs
from transformer.data.vocabulary import UNK
from transformer.training.messages import counted
from transformer.training.plan import Plan

FEW = 3000  # pairs with which no model of this kind learns to translate what it has not seen
MANY_UNKNOWN = 0.02  # the share of unknown tokens beyond which the vocabulary does not suit the text


def lines(text: Text, plan: Plan, valid: Pairs, unseen: Examples, parameters: int, out: Path) -> Iterator[str]:
    """The lines.

    Args:
        text: all pairs.
        plan: of its training pairs.
        valid: its validation pairs that are not too long.
        unseen: the token ids of all its validation pairs.
        parameters: the number of them.
        out: the folder of the run.
    """
    config, training, amount, expected = plan.config, plan.training, plan.amount, plan.expected
    too_long = plan.too_long + len(text.valid) - len(valid)
    tokens = [token for example in unseen for ids in example for token in ids]
    unknown = tokens.count(UNK) / len(tokens)
    different = {*valid}
    twice = len(different.intersection(text.train))
    yield (f"text      {counted(amount.pairs, 'pair')}: {amount.source:,} source and {amount.target:,} target tokens; "
           f"left out: {text.empty:,} with an empty side, {too_long:,} of more than {config.max_length:,} tokens")
    yield (f"validate  {counted(len(valid), 'pair')}{' of the text, held out by source' if text.held_out else ''}; "
           f"{unknown:.1%} of their tokens are unknown, {twice:,} of these pairs also stand in training")
    shared = plan.tokenizers[0] is plan.tokenizers[1]
    vocabulary = (f"{config.target_vocab_size:,} tokens for both sides" if shared else
                  f"{config.source_vocab_size:,} and {config.target_vocab_size:,} tokens")
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
    equal = sum(source == target for source, target in text.train)
    if equal > len(text.train) / 10:
        yield f"note: {counted(equal, 'pair has', 'pairs have')} the same text on both sides"
