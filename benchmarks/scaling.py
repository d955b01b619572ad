"""What a training step would take on more hosts: a model of its parts, fitted to what distributed.py has measured.

    python benchmarks/scaling.py                      fit, test on the size that was held out, predict; write the tables
    python benchmarks/scaling.py --held-out base --dry

It measures nothing. A *host* here is one rank that computes as fast as one core of the machine that was measured. A
step on N hosts, each with b target tokens (and as many source tokens), takes, in seconds,

    overhead + b · token            forward and backward
    + update                        clipping and AdamW of all parameters, on every host
    + calls                         of MPI and the sums, while the backward goes on
    + exchange − hidden             what is waited for after the backward

The gradients of G bytes lie in buckets. For each, a rank sends N − 1 messages, one to the owner of each part, and later
N − 1 with the sum of its own part: 2 (N − 1) messages a bucket, and 2 G (N − 1)/N bytes a step. What is serial: the
messages of one rank go one after the other, each with the latency α, and its bytes pass its link one after the other,
with the bandwidth β. What is concurrent: all ranks send at the same time, every link carries both directions at full
speed, and no switch is a bottleneck.

    exchange = 2 (N − 1) · buckets · α + 2 G (N − 1)/N / β

Hidden behind the backward is the share of the exchange that was measured, and never more than the backward takes. As
MPI may have several messages on their way at once, 2 (N − 1) latencies a bucket are an upper bound.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import distributed
import numpy as np
import page
from workloads import SIZES, Workload

from transformer.distributed.buckets import BUCKET_BYTES

BACKWARD = 2 / 3  # of forward and backward: a product has one in the forward and two in the backward
GIGABIT = 1e9 / 8
HOSTS = (2, 4, 8, 16, 32, 64)
ENOUGH = 0.9  # the efficiency at which more hosts pay
DROPOUT = 0.1  # of the measured workloads that are modelled; they have no padding
SHOWN = ("mid", "base")  # sizes that have a table in the page; the file has all


@dataclass(frozen=True)
class Network:
    """What connects hosts.

    Attributes:
        name: for tables.
        latency: α, seconds that each message takes besides its bytes.
        bandwidth: β, bytes a second in each direction of a host's link; it may be infinite.
    """

    name: str
    latency: float
    bandwidth: float


#: Assumptions, not measurements: the full speed of the link, with latencies usual for TCP and for RDMA.
NETWORKS = (Network("10 Gb/s, 30 µs", 30e-6, 10 * GIGABIT), Network("100 Gb/s, 5 µs", 5e-6, 100 * GIGABIT))


@dataclass(frozen=True)
class Size:
    """What of a workload decides the time of a step.

    Attributes:
        parameters, tensors: numbers that are learned, and the tensors that hold them.
        layers: of both stacks.
        flops: floating-point operations of the products for one target token, forward and backward.
        elements: numbers that all else computes for it in the forward.
    """

    parameters: int
    tensors: int
    layers: int
    flops: float
    elements: float

    @classmethod
    def of(cls, workload: Workload) -> Self:
        """Counted from the sizes of the model and the length of its sentences."""
        width, inner, words, length = workload.d_model, workload.d_ff, workload.vocabulary, workload.length
        attention, feed_forward, norm = 4 * width * (width + 1), 2 * width * inner + inner + width, 2 * width
        each = 3 * attention + 2 * feed_forward + 5 * norm  # a layer of the encoder and one of the decoder
        weights = workload.layers * (12 * width**2 + 4 * width * inner) + words * width
        scores = workload.layers * 3 * 4 * length * width  # Q Kᵀ and A V, a product and a sum each, in three attentions
        passed_on = workload.layers * (20 * width + 4 * inner + 6 * workload.heads * length) + 2 * words
        return cls(
            parameters=workload.layers * each + 2 * norm + 3 * words * width,
            tensors=workload.layers * (3 * 8 + 2 * 4 + 5 * 2) + 2 * 2 + 3,
            layers=2 * workload.layers, flops=3 * (2 * weights + scores), elements=passed_on)

    @property
    def bytes(self) -> int:
        """Of its gradients, G."""
        return 4 * self.parameters

    @property
    def buckets(self) -> int:
        """How many its gradients fill."""
        return math.ceil(self.bytes / BUCKET_BYTES)


@dataclass(frozen=True)
class Host:
    """How fast a rank is.

    Attributes:
        layer: seconds of a step for each layer, however few the tokens: calls of the interpreter.
        flop, element: seconds for each of `Size.flops` and `Size.elements`.
        parameter, tensor: seconds of clipping and AdamW for each.
        byte: seconds in calls of MPI, while the backward goes on, for each byte that is sent.
    """

    layer: float
    flop: float
    element: float
    parameter: float
    tensor: float
    byte: float = 0.0

    def compute(self, size: Size, tokens: float) -> float:
        """Seconds of forward and backward for so many tokens."""
        return self.overhead(size) + tokens * self.token(size)

    def overhead(self, size: Size) -> float:
        """Those of them that do not depend on the number of tokens."""
        return size.layers * self.layer

    def token(self, size: Size) -> float:
        """Those of each token."""
        return size.flops * self.flop + size.elements * self.element

    def update(self, size: Size) -> float:
        """Seconds of clipping and AdamW."""
        return size.parameters * self.parameter + size.tensors * self.tensor


@dataclass(frozen=True)
class Step:
    """The parts of a step, in seconds. `latency` and `bandwidth` are those of the exchange when nothing is hidden."""

    compute: float
    update: float
    calls: float = 0.0
    latency: float = 0.0
    bandwidth: float = 0.0
    hidden: float = 0.0

    @property
    def exposed(self) -> float:
        """What of the exchange is waited for."""
        return self.latency + self.bandwidth - self.hidden

    @property
    def seconds(self) -> float:
        """The whole."""
        return self.compute + self.update + self.calls + self.exposed

    @property
    def bottleneck(self) -> str:
        """The largest part."""
        exchange = "latency" if self.latency > self.bandwidth else "bandwidth"
        parts = {"computation": self.compute, "update": self.update, "calls of MPI": self.calls, exchange: self.exposed}
        return max(parts, key=lambda name: parts[name])


def sent(size: Size, hosts: int) -> float:
    """Bytes that each of so many hosts sends in a step."""
    return 2 * size.bytes * (hosts - 1) / hosts


def messages(size: Size, hosts: int) -> int:
    """Messages that each of them sends in a step, one after the other."""
    return 2 * (hosts - 1) * size.buckets


def step(size: Size, tokens: float, hosts: int, host: Host, network: Network, hidden: float) -> Step:
    """A step of `hosts` hosts.

    Args:
        size: the model.
        tokens: target tokens of each host.
        hosts: how many; 1: there is nothing to exchange.
        host: how fast each is.
        network: what connects them.
        hidden: the share of the exchange that goes on behind the backward, from 0 to 1.
    """
    compute, latency = host.compute(size, tokens), messages(size, hosts) * network.latency
    bandwidth = sent(size, hosts) / network.bandwidth
    return Step(compute, host.update(size), sent(size, hosts) * host.byte, latency, bandwidth,
                min(hidden * (latency + bandwidth), BACKWARD * compute))


def efficiency(size: Size, tokens: float, hosts: int, host: Host, network: Network, hidden: float) -> float:
    """What one host alone would take for the same batch, over what all hosts together spend on it: at best 1."""
    alone = step(size, hosts * tokens, 1, host, network, hidden).seconds
    return alone / (hosts * step(size, tokens, hosts, host, network, hidden).seconds)


def enough_tokens(size: Size, hosts: int, host: Host, network: Network, hidden: float, least: float = ENOUGH) -> float:
    """The fewest tokens of each host with which the `efficiency` is `least`, a number below 1.

    A step of one host with all tokens takes as long as `least` of what all hosts spend. Where the backward is long
    enough to hide the whole share, that is a linear equation in the tokens, and where it is not, another one. What the
    backward hides grows with the tokens until it is the share, so the greater of the two solutions satisfies both.
    """
    nothing = step(size, 0, hosts, host, network, 0.0)
    fixed, token = host.overhead(size) + nothing.update, host.token(size)
    exchange = nothing.calls + nothing.latency + nothing.bandwidth
    share = hidden * (nothing.latency + nothing.bandwidth)

    def solved(constant: float, slope: float) -> float:
        """hosts · token · b + fixed = least · hosts · (constant + slope · b)"""
        return (least * hosts * constant - fixed) / (hosts * (token - least * slope))

    full = solved(fixed + exchange - share, token)
    partly = solved(fixed + exchange - BACKWARD * host.overhead(size), (1 - BACKWARD) * token)
    return max(0.0, full, partly)


# --------------------------------------------------------------------------- the fit


def fitted(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Factors of the columns, none negative, with the least sum of squared relative errors of the `values`.

    Args:
        rows: for each value the quantities that it is made of, each above 0.
        values: above 0.
    """
    scaled = np.asarray(rows, np.float64) / np.asarray(values, np.float64)[:, None]
    width = scaled.shape[1]
    best, least = np.zeros(width), float(len(scaled))
    for count in range(1, width + 1):
        for columns in itertools.combinations(range(width), count):  # the best has some at 0, the others free
            chosen = list(columns)
            factors = np.linalg.lstsq(scaled[:, chosen], np.ones(len(scaled)))[0]
            error = float(((scaled[:, chosen] @ factors - 1) ** 2).sum())
            if factors.min() >= 0 and error < least:
                best, least = np.zeros(width), error
                best[chosen] = factors
    return best.tolist()


@dataclass(frozen=True)
class Measured:
    """Medians of one size, in seconds.

    Attributes:
        size, tokens: the model, and the target tokens of its batch.
        ranks: how many shared the batch.
        whole, half: step and update of one process, with the batch and with a rank's share of it.
        step, update, calls, waited, alone: of the ranks.
    """

    size: Size
    tokens: int
    ranks: int
    whole: tuple[float, ...]
    half: tuple[float, ...]
    step: float
    update: float
    calls: float
    waited: float
    alone: float

    @classmethod
    def of(cls, workload: Workload, row: Mapping[str, Any]) -> Self:
        """From a row of distributed_parts.json."""
        def seconds(program: str, *keys: str) -> tuple[float, ...]:
            return tuple(row[program][key]["median"] / 1e3 for key in keys)

        ranks = next(name for name in row if name.endswith(" ranks"))
        return cls(Size.of(workload), workload.batch * workload.length, int(ranks.split()[0]),
                   seconds(distributed.ALONE, "ms", "update"), seconds(distributed.HALF, "ms", "update"),
                   *seconds(ranks, "ms", "update", "calls", "waited", "alone"))

    @property
    def hidden(self) -> float:
        """The share of the exchange that was not waited for."""
        return min(1.0, max(0.0, 1 - self.waited / self.alone))


@dataclass(frozen=True)
class Fit:
    """What the sizes say that were fitted.

    Attributes:
        host: how fast one process is, when the other cores rest.
        here: what connects the ranks of the machine that was measured: its memory.
        sharing: how many times longer a rank computes while the others do, too: they share memory and caches.
        hidden: the share of the exchange that is hidden.
    """

    host: Host
    here: Network
    sharing: float
    hidden: float

    @classmethod
    def to(cls, sizes: Sequence[Measured]) -> Self:
        """The fit to these sizes."""
        steps = [(one.size, tokens, *times) for one in sizes
                 for tokens, times in ((one.tokens, one.whole), (one.tokens / one.ranks, one.half))]
        layer, flop, element = fitted(
            [(size.layers, tokens * size.flops, tokens * size.elements) for size, tokens, _, _ in steps],
            [whole - update for *_, whole, update in steps])
        parameter, tensor = fitted([(size.parameters, size.tensors) for size, *_ in steps],
                                   [update for *_, update in steps])
        latency, byte = fitted([(messages(one.size, one.ranks), sent(one.size, one.ranks)) for one in sizes],
                               [one.alone for one in sizes])
        calls = statistics.median(one.calls / sent(one.size, one.ranks) for one in sizes)
        sharing = statistics.median((one.step - one.calls - one.waited) / one.half[0] for one in sizes)
        return cls(Host(layer, flop, element, parameter, tensor, calls),
                   Network("this machine", latency, 1 / byte if byte else math.inf), sharing,
                   statistics.median(one.hidden for one in sizes))

    def here_step(self, one: Measured, ranks: int) -> float:
        """The predicted seconds of a step on so many ranks of the machine that was measured."""
        parts = step(one.size, one.tokens / ranks, ranks, self.host, self.here, self.hidden)
        sharing = self.sharing if ranks > 1 else 1.0
        return sharing * (parts.compute + parts.update) + parts.calls + parts.exposed


# --------------------------------------------------------------------------- tables


def tested(fit: Fit, sizes: Mapping[str, Measured], held_out: str) -> dict[str, dict[str, Any]]:
    """For each size, on one rank and on all: milliseconds measured and modelled, the relative error, and its role."""
    return {
        f"{name}, {ranks} {'rank' if ranks == 1 else 'ranks'}": {
            "size": name, "ranks": ranks, "held out": name == held_out, "measured ms": 1e3 * seconds,
            "modelled ms": 1e3 * fit.here_step(one, ranks), "error": fit.here_step(one, ranks) / seconds - 1}
        for name, one in sizes.items() for ranks, seconds in ((1, one.whole[0]), (one.ranks, one.step))}


def predicted(fit: Fit, sizes: Mapping[str, Measured]) -> Iterator[dict[str, Any]]:
    """Each size on each network with each number of hosts. The hidden share is the one measured with this size."""
    for (name, one), network, hosts in itertools.product(sizes.items(), NETWORKS, HOSTS):
        case = hosts, fit.host, network, one.hidden
        parts = step(one.size, one.tokens, *case)
        yield {"size": name, "network": network.name, "hosts": hosts, "tokens per host": one.tokens,
               "ms": 1e3 * parts.seconds, "efficiency": efficiency(one.size, one.tokens, *case),
               "tokens that pay": enough_tokens(one.size, *case), "bottleneck": parts.bottleneck,
               **{f"{part} ms": 1e3 * seconds for part, seconds in asdict(parts).items()}}


def table_of_test(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """`tested` in Markdown."""
    lines = ["| | measured (ms) | modelled (ms) | error | |", "|---|---:|---:|---:|---|"]
    for title, row in rows.items():
        cells = [page.number(row["measured ms"]), page.number(row["modelled ms"]), f"{row['error']:+.1%}",
                 "held out" if row["held out"] else "fitted"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_predictions(rows: Iterable[Mapping[str, Any]]) -> str:
    """Those of `predicted` for one size, in Markdown: a row for each number of hosts, columns for each network."""
    by_hosts: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_hosts.setdefault(row["hosts"], []).append(row)
    networks = [row["network"] for row in next(iter(by_hosts.values()))]
    heads = [head for network in networks for head in (
        f"{network}: modelled step (ms)", "efficiency", f"tokens per host for {ENOUGH:.0%}", "largest part")]
    lines = [f"| hosts | {' | '.join(heads)} |", "|---:|" + "---:|---:|---:|---|" * len(networks)]
    for hosts, cases in by_hosts.items():
        cells = [cell for row in cases for cell in (
            page.number(row["ms"]), f"{row['efficiency']:.0%}", f"{row['tokens that pay']:,.0f}", row["bottleneck"])]
        lines.append(f"| {hosts} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measured_sizes(report: Mapping[str, Any]) -> dict[str, Measured]:
    """Of the report of distributed.py, the sizes that are there."""
    workloads = {name: replace(size, dropout=DROPOUT) for name, size in SIZES.items()}
    return {name: Measured.of(workload, report["results"][workload.title]) for name, workload in workloads.items()
            if workload.title in report["results"]}


def main() -> None:
    """Fit, test, predict, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", choices=list(SIZES), default="mid", help="the size that is not fitted (mid)")
    parser.add_argument("--dry", action="store_true", help="print the tables, and write nothing")
    options = parser.parse_args()
    file = page.RESULTS / "distributed_parts.json"
    if not file.exists():
        raise SystemExit(f"nothing has been measured yet:  python benchmarks/distributed.py  writes {file.name}")
    report = json.loads(file.read_text(encoding="utf-8"))
    sizes = measured_sizes(report)
    if missing := [name for name in SIZES if name not in sizes]:
        raise SystemExit(f"{file.name} lacks {', '.join(missing)}, dropout {DROPOUT:g}: measure them together")
    fit = Fit.to([one for name, one in sizes.items() if name != options.held_out])
    test, predictions = tested(fit, sizes, options.held_out), list(predicted(fit, sizes))
    tables = {"distributed_test": table_of_test(test)} | {
        f"distributed_predicted_{name}": table_of_predictions(row for row in predictions if row["size"] == name)
        for name in SHOWN}
    for name, table in tables.items():
        print(f"\n{name}\n{table}")
    print(f"\n{fit}")
    if options.dry:
        return
    (page.RESULTS / "distributed_modelled.json").write_text(json.dumps(
        {"what": "a model of a training step on several hosts", "machine": report["machine"], "fit": asdict(fit),
         "test": test, "predictions": predictions}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    page.put("distributed_test", tables.pop("distributed_test"), page.circumstances(report), distributed.PAGE)
    for name, table in tables.items():
        page.put(name, table, page=distributed.PAGE)


if __name__ == "__main__":
    main()
