"""profile: the trace file, read back: required keys, nesting within each thread, what stands beside each event."""

import json

import minigrad as mg
from minigrad import inspect

from tests.minigrad.inspect.programs import training_step


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
        ("backward", "span", "step"), ("linear (backward)", "operation", "backward")}
