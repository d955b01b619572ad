"""Seeding, and randomness that is a function of integers.

Two kinds of draw, both decided by ``manual_seed``:

- *Parameters* are drawn from ``generator()``, a NumPy generator on the host, so that a seed gives the same
  initial model on every device.
- *Dropout* and *sampling* are counter-based. Each takes a key (seed, step, call): ``set_step`` names the
  training step, the call counter restarts there, and the draw is a function of the key alone. So a checkpoint
  stores integers, and a resumed step draws what it would have drawn.

Threads share one state, as they share NumPy's and PyTorch's global generators: draws in concurrent threads
are safe but fall in an order nobody fixes. Code that needs draws of its own works within ``fork()``, whose
state is a copy, local to the context (``contextvars``) that entered it: the outside stays as it was.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy

from minigrad.device import module_for, on_device

__all__ = [
    "DropoutKey",
    "bernoulli_mask",
    "fork",
    "generator",
    "get_state",
    "manual_seed",
    "next_generator",
    "next_key",
    "set_state",
    "set_step",
]

# What a stream of random numbers is for. It enters the hash, so that no two kinds of draw share a stream.
_PARAMETERS, _DROPOUT, _SAMPLING = range(3)

_WORD = 64  # bits in each number of a key


class DropoutKey(NamedTuple):
    """The three integers that decide one random mask: `seed`, `step` and `call`."""

    seed: int
    step: int
    call: int


def _seed_sequence(purpose: int, key: DropoutKey) -> numpy.random.SeedSequence:
    """NumPy's hash of the key. The words have fixed width, so that different keys never read alike."""
    return numpy.random.SeedSequence(numpy.array([purpose, *key], dtype=numpy.uint64).view(numpy.uint32))


class _State:
    """A seed, the position (step, call) of the counter-based draws, and the parameters' generator."""

    def __init__(self, seed: int) -> None:
        self.lock = threading.Lock()
        self.seed, self.step, self.call = seed, 0, 0
        self.generator: numpy.random.Generator | None = None  # made when it is first asked for: its import takes time


_shared = _State(int.from_bytes(os.urandom(_WORD // 8), "little"))
_current: ContextVar[_State] = ContextVar("minigrad.random", default=_shared)
_state = _current.get


def _word(name: str, value: Any) -> int:
    """``value`` as an integer that fits a word of the key; TypeError or ValueError otherwise."""
    number = operator.index(value)
    if not 0 <= number < 2**_WORD:
        raise ValueError(f"{name} must be between 0 and 2**{_WORD} - 1, got {number}")
    return number


# --- Seeding and state ----------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Start every random draw again from ``seed`` (0 to 2**64 - 1), at step 0.

    A process that never calls it has a seed from the operating system, which ``get_state()["seed"]`` tells.
    """
    state = _state()
    state.seed, state.step, state.call, state.generator = _word("manual_seed: seed", seed), 0, 0, None


def generator() -> numpy.random.Generator:
    """The host generator that parameters are drawn from, whatever device they go to."""
    state = _state()
    with state.lock:
        if state.generator is None:
            bits = numpy.random.PCG64(_seed_sequence(_PARAMETERS, DropoutKey(state.seed, 0, 0)))
            state.generator = numpy.random.Generator(bits)
        return state.generator


def get_state() -> dict[str, Any]:
    """Everything that later draws depend on: integers and strings in dictionaries, which JSON can hold."""
    state = _state()
    return {"seed": state.seed, "step": state.step, "call": state.call, "generator": generator().bit_generator.state}


def set_state(saved: dict[str, Any]) -> None:
    """Go back to the state `saved` by ``get_state``; ValueError, and nothing changed, for anything else."""
    state = _state()
    try:
        key = [_word(name, saved[name]) for name in DropoutKey._fields]
        bits = numpy.random.PCG64()
        bits.state = saved["generator"]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"set_state: not a state made by get_state: {error}") from error
    (state.seed, state.step, state.call), state.generator = key, numpy.random.Generator(bits)


@contextlib.contextmanager
def fork(seed: int | None = None) -> Iterator[None]:
    """Within the block, draw from a copy of the state, or from a fresh ``seed``; the outside is untouched.

    ``gradcheck`` evaluates a function in a fork each time, so that its dropout masks are the same every time.
    """
    saved = get_state()
    token = _current.set(_State(0))
    try:
        if seed is None:
            set_state(saved)
        else:
            manual_seed(seed)
        yield
    finally:
        _current.reset(token)


# --- Counter-based draws --------------------------------------------------------------------------


def set_step(step: int) -> None:
    """Name the training step: the keys that follow are (seed, step, 0), (seed, step, 1), ..."""
    state, step = _state(), _word("set_step: step", step)
    with state.lock:
        state.step, state.call = step, 0


def next_key() -> DropoutKey:
    """The key of the next random mask, different at each call."""
    state = _state()
    with state.lock:
        key = DropoutKey(state.seed, state.step, state.call)
        state.call += 1
    return key


def next_generator() -> numpy.random.Generator:
    """A host generator of its own for one sampling run (``uniform``, ``choice``, ...), keyed like dropout."""
    return numpy.random.Generator(numpy.random.PCG64(_seed_sequence(_SAMPLING, next_key())))


def bernoulli_mask(key: DropoutKey, shape: int | Sequence[int], keep_probability: float, device: str = "cpu") -> Any:
    """Independent booleans, True with ``keep_probability``: a function of its arguments alone.

    Where they are drawn, they stay: on the host and on a GPU the same key gives other masks. On the host each element
    compares 16 random bits with a threshold, which rounds ``keep_probability`` to a multiple of 2**-16 (an error of at
    most 7.7e-6). The bits are those of SFC64 seeded by NumPy's ``SeedSequence`` hash of the key: it passes the same
    statistical tests as Philox, NumPy's counter-based generator, in half the time. On a GPU element i compares 32 bits,
    the first word of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) for the counter
    (i, call, step) and the seed as its key: each thread finds its own.

    Returns a boolean array of ``shape`` on ``device``.
    """
    if device != "cpu":
        return _mask_on_gpu(key, shape, keep_probability, device)
    count = int(numpy.prod(shape))
    words = numpy.random.SFC64(_seed_sequence(_DROPOUT, key)).random_raw(-(-count // 4))
    bits = words.view(numpy.uint16)[:count]  # four elements from each 64-bit word
    return (bits < round(keep_probability * 2**16)).reshape(shape)


def _mask_on_gpu(key: DropoutKey, shape: int | Sequence[int], keep_probability: float, device: str) -> Any:
    first = _first_call.get()
    with on_device(device):
        mask = module_for(device).empty(shape, dtype=bool)
        threshold = numpy.uint64(round(keep_probability * 2**32))
        _philox(module_for(device))(_placed(device, key._replace(call=first)), numpy.uint64(key.call - first),
                                    threshold, mask)
        return mask


# Kernels read their key in the memory of the device, so that those recorded in a CUDA graph draw by another key when it
# is launched again: where -> the array, and what was last written there.
_keys: dict[tuple[Any, str], list[Any]] = {}
_first_call: ContextVar[int] = ContextVar("minigrad.random.first_call", default=0)


def _placed(device: str, key: DropoutKey) -> Any:
    """The key on the device, always in the same array."""
    place = module_for(device), device
    if place not in _keys:
        _keys[place] = [place[0].zeros(3, numpy.uint64), None]
    array, written = _keys[place]
    if written != key:
        array.set(numpy.array(key, numpy.uint64))
        _keys[place][1] = key
    return array


@contextlib.contextmanager
def recorded(device: str) -> Iterator[None]:
    """Within the block, draws on the device are relative to where they are now: see `again`."""
    state = _state()
    token = _first_call.set(state.call)
    try:
        _placed(device, DropoutKey(state.seed, state.step, state.call))
        yield
    finally:
        _first_call.reset(token)


def again(device: str, calls: int) -> None:
    """Before kernels that were `recorded` run again, which drew `calls` masks: let them draw the next ones."""
    state = _state()
    with state.lock:
        _placed(device, DropoutKey(state.seed, state.step, state.call))
        state.call += calls


@functools.cache
def _philox(namespace: Any) -> Any:
    """The kernel that draws a mask: key, calls since that key, and threshold -> whether each element is kept."""
    return namespace.ElementwiseKernel("raw uint64 key, uint64 calls, uint64 threshold", "bool kept", """
        unsigned int c0 = i, c1 = key[2] + calls, c2 = key[1], c3 = key[1] >> 32, k0 = key[0], k1 = key[0] >> 32;
        for (int round = 0; round < 10; round++) {
            unsigned int high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
            unsigned int high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
            c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        kept = c0 < threshold;""", "minigrad_philox")
