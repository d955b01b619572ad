"""The script for a machine with a GPU runs from end to end on the stand-in: a run on a card is not its first."""

import importlib.util
import subprocess
import sys

import pytest

from tests.benchmarks.conftest import BENCHMARKS


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="needs PyTorch, which it measures against")
def test_every_part_runs():
    """Losses and translations of minigrad and PyTorch are compared on the way: a difference fails a part."""
    done = subprocess.run([sys.executable, str(BENCHMARKS / "on_a_card.py"), "--stand-in", "--rounds", "1", "--seconds",
                           "0"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| tiny, dropout 0.1, minigrad | " in done.stdout


def test_a_part_that_fails_keeps_no_other_from_running(load, monkeypatch, stand_in, capsys):
    script, ran = load("on_a_card"), []

    def fails(plan, options):
        raise SystemExit("other losses")

    monkeypatch.setattr(script, "PARTS", {"one": fails, "two": lambda plan, options: ran.append(plan)})
    monkeypatch.setattr(script, "card", dict)
    monkeypatch.setattr(script.paired, "require", list)
    monkeypatch.setattr(sys, "argv", ["on_a_card.py", "--dry", "--sizes", "toy"])
    with pytest.raises(SystemExit, match="one failed: SystemExit: other losses"):
        script.main()
    assert [workload.title for plan in ran for workload in plan.workloads] == ["toy, dropout 0", "toy, dropout 0.1"]


def test_a_trace_is_counted_by_step(load):
    def event(category, name, microseconds):
        return {"ph": "X", "cat": category, "name": name, "ts": 0, "dur": microseconds}

    events = [{"ph": "M", "name": "process_name"}, event("cpu_op", "aten::mm", 900), event("kernel", "gemm", 300),
              event("kernel", "gemm", 100), event("kernel", "add", 50), event("gpu_memcpy", "Memcpy HtoD", 150),
              event("cuda_driver", "cuLaunchKernel", 7), event("cuda_runtime", "cudaStreamSynchronize", 70),
              event("cuda_runtime", "cudaDeviceSynchronize", 80)]
    assert load("launches").counted(events, steps=2) == {
        "kernels": 1.5, "copies": 0.5, "waits": 0.5, "busy": pytest.approx(0.3),
        "longest": [["gemm", 1.0, 0.2], ["Memcpy HtoD", 0.5, 0.075], ["add", 0.5, 0.025]]}
