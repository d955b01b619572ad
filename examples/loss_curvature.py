"""How curved is the loss of a trained Transformer? The top eigenvalue of its Hessian, through all its attention.

    python examples/loss_curvature.py        (after examples/train_copy.py)

The Hessian of n parameters has n² entries and is never made: power iteration needs Hessian-vector products alone.
"""

import math

import click

from minigrad import Tensor, func, random
from minigrad import functional as F

from transformer.cli.command import DEVICE, Command
from transformer.data import collate, encode_pairs, get_task
from transformer.translator import Translator


def dot(x: dict[str, Tensor], y: dict[str, Tensor]) -> float:
    """⟨x, y⟩ over all parameters."""
    return sum(float((x[name] * y[name]).sum()) for name in x)


@click.command(cls=Command, params=[DEVICE])
@click.option("--out", default="runs/copy", show_default=True, help="The run of train_copy.py.")
@click.option("--iterations", default=60, show_default=True, help="Hessian-vector products at most.")
def main(out: str, iterations: int, device: str) -> None:
    """Find the direction in which the loss of the copy model curves most; check it by finite differences."""
    translator = Translator.load(out, device)
    model = translator.model.to(dtype="float64")
    pairs = get_task("copy").pairs("test", 64, seed=1)
    batch = collate(encode_pairs(pairs, translator.source_tokenizer, translator.target_tokenizer), range(64))

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        logits = func.functional_call(model, parameters, batch.source, batch.target[:, :-1])
        return F.cross_entropy(logits, batch.target[:, 1:], ignore_index=model.config.pad_id)
    point = {name: p.detach() for name, p in model.named_parameters()}
    vector = {name: Tensor(random.generator().normal(size=p.shape), device=device) for name, p in point.items()}
    eigenvalue = math.inf
    for iteration in range(1, iterations + 1):
        length = math.sqrt(dot(vector, vector))
        direction = {name: v / length for name, v in vector.items()}
        vector = func.hvp(loss, point, direction)
        previous, eigenvalue = eigenvalue, dot(direction, vector)  # the Rayleigh quotient
        print(f"iteration {iteration}: eigenvalue {eigenvalue:.6g}")
        if abs(eigenvalue - previous) < 1e-5 * abs(eigenvalue):
            break
    step = 1e-6  # so small that hardly a ReLU changes sides on the way
    near = [{n: p + direction[n] * s for n, p in point.items()} for s in (step, -step)]
    ahead, behind = (dot(func.grad(loss)(place), direction) for place in near)
    print(f"by finite differences of the gradient the eigenvalue is {(ahead - behind) / (2 * step):.6g}")
    attention = {name: v for name, v in direction.items() if "attention" in name}
    print(f"{dot(attention, attention):.0%} of the direction is in the attentions' weights; gradient descent is stable "
          f"along it for rates below 2/λ = {2 / abs(eigenvalue):.3g}")


if __name__ == "__main__":
    main()
