"""Translating 64 sentences, greedily and with a beam of 4, against PyTorch with a key-value cache written by hand.

    python benchmarks/decoding.py

The model is the small one, with random weights that never say end-of-sentence, so that every sentence gets 32 tokens;
the sources have 11 to 32. Both must find the same translations, token by token, before anything is timed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import page
import paired
import turns
from workloads import DRY, SIZES, Workload

TINY = replace(DRY, vocabulary=300, padded=True)
WORKLOAD, TOKENS = replace(SIZES["small"], length=32, padded=True), 32
MODULES = {"minigrad": "minigrad_decoding", "PyTorch": "torch_decoding"}
ROWS = {1: "greedy", 4: "beam of 4"}


def measured(options: argparse.Namespace) -> None:
    """As one of the measured processes: answer with the translations, then decode whenever it has a turn."""
    answers = turns.Answers()
    decoder = importlib.import_module(f"peers.{MODULES[options.measure]}").decoder
    workload: Workload = options.workload
    (source, _), = workload.batches(1)
    arguments = workload, options.weights, options.threads, options.beam, options.tokens, options.device
    with decoder(*arguments) as decode:
        answers.give({"translations": decode(source)})
        answers.serve(lambda: decode(source))


def check_translations(answers: dict[str, dict[str, Any]]) -> None:
    """SystemExit if a program translates otherwise than minigrad."""
    expected = answers["minigrad"]["translations"]
    for name, answer in answers.items():
        wrong = [i for i, (ours, theirs) in enumerate(zip(expected, answer["translations"], strict=True))
                 if ours != theirs]
        if wrong:
            raise SystemExit(f"{name} translates {len(wrong)} of {len(expected)} sentences otherwise than minigrad, "
                             f"sentence {wrong[0]} among them; nothing is published")


def decode(beam: int, names: Sequence[str], options: argparse.Namespace,
           devices: Mapping[str, str] = {}) -> list[paired.Round]:
    """Let the programs decode in turns, on the CPU unless `devices` has another."""
    paired.confine(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder) / "start.safetensors"
        options.workload.write_weights(weights, endless=True)
        commands = {name: [sys.executable, __file__, "--measure", name, "--beam", str(beam), "--weights", str(weights),
                           "--workload", options.workload.to_json(), "--tokens", str(options.tokens),
                           "--threads", str(options.threads), "--device", devices.get(name, "cpu")] for name in names}
        with turns.started(commands) as processes:
            check_translations({name: process.ready for name, process in processes.items()})
            return turns.take(processes, options.rounds, options.seconds)


def main() -> None:
    """Measure both ways of decoding, or be one of the measured processes."""
    parser = paired.parser(__doc__)
    parser.add_argument("--workload", type=Workload.from_json, default=WORKLOAD, help=argparse.SUPPRESS)
    parser.add_argument("--tokens", type=int, default=TOKENS, help=argparse.SUPPRESS)
    for hidden in ("--measure", "--weights"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    parser.add_argument("--beam", type=int, help=argparse.SUPPRESS)
    options = paired.parsed(parser)
    if options.measure:
        measured(options)
        return
    if options.dry:
        options.workload, options.tokens = TINY, TINY.length
    paired.require(["torch"])
    for beam, title in ROWS.items():
        rounds = decode(beam, ["minigrad", "PyTorch"], options)
        report = paired.report(f"time to translate 64 sentences, float32, {options.threads} threads", "ms",
                               len(rounds), ["torch"], {title: paired.compare(rounds, "minigrad", "PyTorch")["ms"]})
        page.publish("decoding", report, not options.dry)


if __name__ == "__main__":
    main()
