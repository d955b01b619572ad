"""What a step of training asks of a GPU: kernels, copies, waits, and the time that the GPU is busy. One line of JSON.

    python benchmarks/launches.py --peer minigrad --workload '{"name": …}' --weights start.safetensors --device cuda

PyTorch's profiler records, through CUPTI, what any library of the process launches. It slows the host down, so the
times of steps are measured elsewhere; those of kernels are the GPU's own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import peers
from workloads import Workload

STEPS = 3
# Categories of Kineto, the profiler's own library: what a GPU does, and calls of the host.
WORK = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "copies"}
CALLS = ("cuda_runtime", "cuda_driver")
WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cuStreamSynchronize", "cuEventSynchronize")


def counted(events: Iterable[dict[str, Any]], steps: int) -> dict[str, Any]:
    """What the events of a trace, in Chrome's format, say of a step: numbers, ms, and number and ms by name.

    "busy" adds up kernels and copies, each in full where several run at once. A wait is a call that returns when the
    GPU has finished something; it is the whole GPU that `traced` and the profiler wait for, at the end.
    """
    kinds = {"kernels": 0, "copies": 0, "waits": 0}
    number: Counter[str] = Counter()
    busy: Counter[str] = Counter()
    for event in events:
        category, name = event.get("cat"), event["name"]
        if category in CALLS and name in WAITS:
            kinds["waits"] += 1
        if category in WORK:
            kinds[WORK[category]] += 1
            number[name] += 1
            busy[name] += event["dur"] / 1e3
    return {**{kind: count / steps for kind, count in kinds.items()}, "busy": busy.total() / steps,
            "longest": [[name, number[name] / steps, ms / steps] for name, ms in busy.most_common(20)]}


def traced(options: argparse.Namespace) -> list[dict[str, Any]]:
    """The events of `STEPS` steps, after as many that do not count."""
    from torch.profiler import ProfilerActivity, profile

    trainer = peers.module(options.peer).trainer
    with trainer(options.workload, options.weights, options.threads, options.device) as training:
        batches = [training.prepare(*batch) for batch in options.workload.batches(STEPS)]
        for _ in range(2):  # at first libraries compile and choose kernels, and CUPTI gets ready
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
                for batch in batches:
                    training.step(batch)
                training.settle()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(file))
        events: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    return events


def main() -> None:
    """Trace, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=peers.ON_A_GPU, required=True)
    parser.add_argument("--workload", type=Workload.from_json, required=True)
    parser.add_argument("--weights", required=True, help="a safetensors file, from Workload.write_weights")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    print(json.dumps(counted(traced(parser.parse_args()), STEPS)))


if __name__ == "__main__":
    main()
