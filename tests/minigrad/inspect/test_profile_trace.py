"""profile: the trace file, read back: required keys, nesting within each thread, what stands beside each event."""

import contextvars
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import minigrad as mg
from minigrad import inspect
from minigrad.func import checkpoint

from tests.minigrad.inspect.programs import leaf, training_step


def complete(profile, folder):
    """The events of the file that a profile writes that have a begin and an end, each with the one that it lies in.

    They lie in each other by the times of their thread alone; none may lie across two.
    """
    path = folder / "trace.json"
    profile.save(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace == profile.to_chrome_trace()
    found, stacks = [], {}
    for event in trace["traceEvents"]:
        assert {"name", "ph", "pid", "args"} <= set(event)
        if event["ph"] != "X":
            continue
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
            stack.pop()
        around = stack[-1] if stack else None
        if around is not None:
            assert event["ts"] + event["dur"] <= around["ts"] + around["dur"] + 1e-6, (event, around)
        stack.append(event)
        found.append((event, around))
    return found


def test_the_events_of_a_training_step(tmp_path, device):
    model, step = training_step(device)
    with mg.profile(model) as profile, inspect.span("step"):
        step()
    found = complete(profile, tmp_path)
    assert len(found) == len(profile.spans)
    for event, _ in found:
        assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= profile.elapsed * 1e6 + 1e-6
        assert 0 <= event["args"]["own us"] <= event["dur"]
    assert {(event["name"], event["cat"], around and around["name"]) for event, around in found} >= {
        ("step", "span", None), ("Transformer", "module", "step"), ("encoder", "module", "Transformer"),
        ("encoder.layers.0.self_attention_residual", "module", "encoder.layers.0"),
        ("encoder.layers.0.self_attention", "module", "encoder.layers.0.self_attention_residual"),
        ("linear", "operation", "encoder.layers.0.feed_forward.inner"),
        ("backward", "span", "step"), ("linear (backward)", "backward", "backward")}


def test_an_event_has_bytes_and_module(tmp_path):
    x, w = leaf(2, 3, dtype=np.float32), leaf(3, 4, dtype=np.float32)
    layer = mg.nn.Linear(4, 5, bias=False)
    with mg.profile(layer) as profile:
        layer(x @ w).sum().backward()
    events = {event["name"]: event["args"] for event, _ in complete(profile, tmp_path)}
    assert events["matmul"].pop("own us") > 0
    assert events["matmul"] == {"module": "", "bytes": 32}
    assert (events["linear (backward)"]["module"], events["linear (backward)"]["bytes"]) == ("Linear", 32 + 80)


def test_what_is_computed_again_lies_in_the_backward(tmp_path):
    with mg.profile() as profile:
        checkpoint(mg.exp, leaf(3) * 2).sum().backward()
    runs = [around["name"] for event, around in complete(profile, tmp_path) if event["name"] == "exp"]
    assert runs == ["checkpoint", "checkpoint (backward)"]


def test_each_thread_has_a_track(tmp_path):
    """Workers that run in copies of the block's context, at the same time, each within its own spans."""
    model, _ = training_step()
    barrier = threading.Barrier(2, timeout=10)

    def work():
        barrier.wait()
        x = leaf(6, 6)
        for _ in range(20):
            with inspect.span("round"):
                model.decoder.norm(mg.exp(leaf(4, 8, dtype=np.float32))).sum().backward()
                checkpoint(lambda y: mg.tanh(y) @ y, x).sum().backward()
        return threading.get_native_id()

    pool = ThreadPoolExecutor(2, thread_name_prefix="worker")
    with mg.profile(model) as profile, inspect.span("main"), pool:
        workers = [pool.submit(contextvars.copy_context().run, work) for _ in range(2)]
        numbers = [worker.result() for worker in workers]
    found = complete(profile, tmp_path)
    for number in numbers:
        own = [(event["name"], around and around["name"]) for event, around in found if event["tid"] == number]
        assert own.count(("round", None)) == 20
        assert own.count(("decoder.norm", "round")) == 20  # its whole path: no module is around it
        assert own.count(("layer_norm", "decoder.norm")) == 20
        assert own.count(("layer_norm (backward)", "backward")) == 20
        assert own.count(("tanh", "checkpoint (backward)")) == own.count(("tanh", "checkpoint")) == 20
        assert sum(span.own for span in profile.spans if span.thread == number) <= profile.elapsed * 1e9
    assert "ms in the block of 3 threads" in str(profile)
