"""The tools are loaded on demand, and a block is local to its task and its thread."""

import asyncio
import subprocess
import sys
import threading

import pytest

import minigrad as mg
from minigrad import Tensor, inspect
from minigrad.engine.interpreters import Interpreter, interpreters, interpreting, not_interpreting

from tests.minigrad.inspect.programs import leaf


def test_importing_minigrad_does_not_load_the_tools():
    program = """
import sys, minigrad
assert not {"minigrad.inspect", "minigrad.tensor.notebook"} & sys.modules.keys()
minigrad.Tensor([1.0])._repr_html_()
with minigrad.profile() as profile: pass
assert minigrad.profile is minigrad.inspect.profile
assert minigrad.detect_anomaly is minigrad.inspect.detect_anomaly
"""
    subprocess.run([sys.executable, "-c", program], check=True)


BLOCKS = {"op_hook": lambda: inspect.op_hook(lambda event: None), "profile": inspect.profile,
          "memory_meter": inspect.memory_meter, "detect_anomaly": inspect.detect_anomaly,
          "record_tape": inspect.record_tape}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_is_local_to_its_task_and_thread_and_ends_with_an_exception(block):
    watched = {}

    def look(name):
        watched[name] = len(interpreters())

    async def inside():
        with block():
            await asyncio.sleep(0)
            look("in")
            thread = threading.Thread(target=look, args=("thread",))
            thread.start()
            thread.join()
            mg.exp(leaf(3)).sum().backward()
            raise KeyError

    async def outside():
        await asyncio.sleep(0)
        look("out")

    async def both():
        return await asyncio.gather(inside(), outside(), return_exceptions=True)

    first, _ = asyncio.run(both())
    assert isinstance(first, KeyError)
    assert watched == {"in": 1, "thread": 0, "out": 0}
    assert interpreters() == ()


def test_a_tool_may_hide_what_it_does():
    class Count(Interpreter):
        count = 0

        def operation(self, op, operands, proceed):
            self.count += 1
            return proceed(operands)

    count = Count()
    with interpreting(count):
        mg.exp(Tensor([1.0]))
        with not_interpreting(Interpreter):
            mg.exp(Tensor([1.0]))
        mg.exp(Tensor([1.0]))
    assert count.count == 2
