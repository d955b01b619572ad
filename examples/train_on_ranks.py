"""A training loop of one's own on several processes, which repeats what it reads: c a b → c a b.

    mpirun -n 2 python examples/train_on_ranks.py

Each process runs this program. What makes it distributed is `DistributedGradients`, and that one rank speaks for all.
`python -m mpi4py examples/train_on_ranks.py` in place of `python …` ends all ranks if there is a mistake in one.
"""

import click
from mpi4py import MPI

import minigrad
from minigrad.optim import AdamW, CosineLR, clip_grad_norm_

from transformer import Transformer, TransformerConfig
from transformer.cli.command import DEVICE
from transformer.data import batches_by_length, build_tokenizers, collate, encode_pairs, get_task
from transformer.training import DistributedGradients
from transformer.translator import Translator


@click.command(params=[DEVICE])
@click.option("--steps", default=600, show_default=True, help="Updates of the parameters.")
def main(steps: int, device: str) -> None:
    """Train on 50,000 random strings of the letters a to j, then repeat 200 that were never seen."""
    pairs = get_task("copy").pairs("train", 50_000, seed=1)  # [("c a b", "c a b"), …]
    tokenizers = build_tokenizers("words", *zip(*pairs, strict=True))
    examples = encode_pairs(pairs, *tokenizers)

    minigrad.manual_seed(1)  # the same parameters on every rank
    sizes = (len(tokenizer.vocabulary) for tokenizer in tokenizers)
    model = Transformer(TransformerConfig.tiny(*sizes)).to(device)
    optimizer = AdamW(model.parameters(), lr=2e-3)
    schedule = CosineLR(optimizer, warmup_steps=100, total_steps=max(steps, 100) + 1)

    plan = batches_by_length(examples, batch_tokens=2048, seed=1, epoch=0)
    with DistributedGradients(model, MPI.COMM_WORLD) as gradients:
        for step in range(steps):
            minigrad.random.set_step(step)  # dropout follows from the seed, the step and the shard
            batch = collate(examples, plan[step % len(plan)])  # the whole batch: each rank takes its shards of it
            optimizer.zero_grad()
            loss = gradients(batch.source, batch.target[:, 1:], denominator=batch.num_target_tokens)
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()  # the same on every rank
            schedule.step()
            if gradients.ranks.rank == 0 and step % 100 == 99:
                print(f"step {step + 1}: loss {float(loss) / batch.num_target_tokens:.3f}")

    sources, references = zip(*get_task("copy").pairs("test", 200, seed=1), strict=True)
    found = Translator(model, *tokenizers).evaluate(sources, references, ranks=gradients.ranks)
    if gradients.ranks.rank == 0:
        print(f"repeated without a mistake: {found['exact_match']:.1%} of 200 unseen strings")


if __name__ == "__main__":
    main()
