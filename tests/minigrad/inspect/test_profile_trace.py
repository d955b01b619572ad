"""profile: the trace file, read back: required keys, nesting within each thread, what stands beside each event."""

import json

import minigrad as mg
from minigrad import inspect

from tests.minigrad.inspect.programs import training_step


def test_the_events_of_a_training_step(tmp_path, device):
    """By the times of their thread alone the events lie in each other; none lies across two."""
    model, step = training_step(device)
    with mg.profile(model) as profile, inspect.span("step"):
        step()
    profile.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    events, found, stack = [event for event in trace["traceEvents"] if event["ph"] == "X"], set(), []
    assert len(events) == len(profile.spans)
    for event in events:
        begin, end = event["ts"], event["ts"] + event["dur"]
        assert 0 <= begin <= end <= profile.elapsed * 1e6 + 1e-6
        assert 0 <= event["args"]["own us"] <= event["dur"]
        while stack and stack[-1][0] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1][0] + 1e-6
        found.add((event["name"], event["cat"], stack[-1][1] if stack else None))
        stack.append((end, event["name"]))
    assert found >= {
        ("step", "span", None), ("Transformer", "module", "step"), ("encoder", "module", "Transformer"),
        ("encoder.layers.0.self_attention", "module", "encoder.layers.0.self_attention_residual"),
        ("linear", "operation", "encoder.layers.0.feed_forward.inner"),
        ("backward", "span", "step"), ("linear (backward)", "operation", "backward")}
