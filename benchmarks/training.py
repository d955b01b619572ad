"""A step of training, forward, backward and AdamW, against other libraries: the same model, data, dtype and threads.

    python benchmarks/training.py                           against PyTorch eager, all sizes
    python benchmarks/training.py --peers compile jax gemm  against others
    python benchmarks/training.py --sizes mid --dropout 0 --padding no --rounds 3 --dry     a first look

All sizes are in workloads.py, all peers in peers/. PyTorch eager is the faster, in each round, of ``nn.Transformer``
and a version written with ``scaled_dot_product_attention``. Before anything is timed, the losses are compared.
"""

from __future__ import annotations

import contest
import page
import paired
import workloads


def main() -> None:
    """Measure one workload after the other, and publish each as soon as it is there."""
    parser = contest.parser(__doc__, rounds=9)
    parser.add_argument("--sizes", nargs="+", choices=list(workloads.SIZES), default=list(workloads.SIZES))
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0, 0.1])
    parser.add_argument("--padding", nargs="+", choices=["no", "yes"], default=["no", "yes"])
    parser.add_argument("--peers", nargs="+", choices=list(contest.SHORT), default=["eager"])
    options = parser.parse_args()
    others = [contest.SHORT[short] for short in options.peers]
    paddings = [choice == "yes" for choice in options.padding]
    for workload in workloads.variations(options.sizes, options.dropout, paddings):
        rounds = contest.train(workload, ["minigrad", *others], options)
        for short, title in zip(options.peers, others, strict=True):
            if title not in rounds[0]:
                continue
            report = paired.report(
                f"time of a training step, float32, {options.threads} threads", "ms", len(rounds),
                contest.packages([title]), {workload.title: contest.row(rounds, title)})
            page.publish(f"training_{short}", report, not options.dry)


if __name__ == "__main__":
    main()
