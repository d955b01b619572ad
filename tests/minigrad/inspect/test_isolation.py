"""A block is local to its task and its thread, and keeps nothing alive."""

import asyncio
import gc
import weakref

import pytest

import minigrad as mg
from minigrad import inspect
from minigrad.engine.watch import watchers

from tests.minigrad.inspect.programs import leaf

BLOCKS = {"profile": inspect.profile, "memory_meter": inspect.memory_meter, "detect_anomaly": inspect.detect_anomaly,
          "record_tape": inspect.record_tape}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_is_local_to_its_task_and_thread_and_ends_with_an_exception(block):
    watched = {}

    def look(name):
        watched[name] = len(watchers())

    async def inside():
        with block():
            await asyncio.sleep(0)
            look("in")
            await asyncio.get_running_loop().run_in_executor(None, look, "thread")
            raise KeyError

    async def outside():
        await asyncio.sleep(0)
        look("out")

    async def both():
        await asyncio.gather(inside(), outside(), return_exceptions=True)

    asyncio.run(both())
    assert watched == {"in": 1, "thread": 0, "out": 0}
    assert watchers() == ()


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block_keeps_nothing_alive(block):
    gc.disable()
    try:
        with block() as tool:
            for finish in (lambda out: out.backward(), lambda out: None):
                x = leaf(3)
                y = mg.exp(x * 2)
                finish(y.sum())
                parts = [weakref.ref(part) for part in (x, y._node, y._data)]
                del x, y
                kept = [part() for part in parts]
                assert kept[1:] == [None, None]
                assert kept[0] is None or isinstance(tool, inspect.Tape)  # which keeps leaves
                del kept
            later = mg.exp(leaf(3))
        tools = [] if tool is None else [weakref.ref(tool)]
        assert str(tool)
        del tool
        assert [tool() for tool in tools] == [None] * len(tools)
        assert later.shape == (3,)
    finally:
        gc.enable()
