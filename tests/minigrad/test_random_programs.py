"""Random programs: first and second gradients against finite differences, whatever is composed with whatever.

The derivative of a program in a random direction u is Σ g·u, and that of Σ g·u in a direction v is Σ (H u)·v; both are
compared with central differences, of the program and of Σ g·u. Differences at the steps h and h/2 err by C·h² and
C·h²/4, so that (4·D(h/2) - D(h))/3 is far better than either; where the two disagree, it says nothing, and the program
is left out and counted.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

import minigrad as mg
from minigrad import Tensor, primitive
from minigrad.device import to_numpy

from tests.minigrad.programs import FAMILIES, Program, names, programs

STEP = 2e-4
AGREE = 1e-4  # how far the differences at the two steps may be apart, relative to the derivative's terms
CLOSE = 1e-7  # how far the gradient may be from what they extrapolate to


class Unusable(Exception):
    """The differences at the two steps disagree."""


def slope(function, scale):
    """The derivative at 0 of a function of one number, by central differences extrapolated to a step of 0."""
    whole, half = ((function(h) - function(-h)) / (2 * h) for h in (STEP, STEP / 2))
    if not abs(whole - half) <= AGREE * scale:
        raise Unusable
    return (4 * half - whole) / 3


def check(program: Program, **replaced) -> None:
    """Raise AssertionError if a gradient of the program is wrong, Unusable if finite differences cannot tell."""
    run = program.compile(**replaced)
    draw = np.random.default_rng(1)
    u, v = ([draw.normal(size=shape) for shape in program.shapes] for _ in range(2))
    start = program.leaves

    def leaves(step):
        moved = [leaf + step * direction for leaf, direction in zip(start, v, strict=True)]
        return [Tensor(array, requires_grad=True) for array in moved]

    def gradients(at, create_graph=False):
        return mg.grad(run(*at), at, create_graph=create_graph)

    def along_u(at):
        return dot(gradients(at), u)[0]

    found, scale = dot(gradients(leaves(0)), v)
    expected = slope(lambda step: run(*leaves(step)).item(), scale)
    assert abs(found - expected) <= CLOSE * scale, f"first gradient: {found} and not {expected}"

    at = leaves(0)
    first = gradients(at, create_graph=True)
    total = sum((g * Tensor(direction)).sum() for g, direction in zip(first, u, strict=True))
    second = mg.grad(total, at, allow_unused=True) if total.requires_grad else [None] * len(at)
    found, scale = dot(second, v)
    expected = slope(lambda step: along_u(leaves(step)), scale)
    assert abs(found - expected) <= CLOSE * scale, f"second gradient: {found} and not {expected}"


def dot(gradients, directions):
    """The sum of the products with the directions, and the sum of their sizes, at least 0.01."""
    products = [np.zeros(1) if g is None else to_numpy(g.data) * direction
                for g, direction in zip(gradients, directions, strict=True)]
    return sum(p.sum() for p in products), max(0.01, sum(np.abs(p).sum() for p in products))


def run_programs(count: int, phases=tuple(Phase), **replaced) -> Counter:
    """Check `count` programs, the same in every run; how many were compared and left out, and of which templates."""
    tally: Counter = Counter()

    @settings(max_examples=count, derandomize=True, deadline=None, database=None, phases=phases,
              report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow])
    @given(programs())
    def every_program(program):
        try:
            check(program, **replaced)
        except Unusable:
            tally["left out"] += 1
        else:
            tally["compared"] += 1
            tally.update(set(program.templates))

    every_program()
    return tally


@pytest.mark.parametrize(("count", "share"), [(60, 0.6), pytest.param(500, 0.95, marks=pytest.mark.slow)])
def test_programs(count, share):
    """That most operations occur is part of it."""
    tally = run_programs(count)
    assert tally["compared"] >= 0.98 * count
    templates = {template for family, *_ in FAMILIES for template in family}
    assert len(templates & set(tally)) > share * len(templates)


@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_programs_on_compositions(count):
    with mg.fused(False):
        assert run_programs(count)["compared"] >= 0.95 * count


# --- What is wrong is found -------------------------------------------------------------------------


@primitive
def off(x):
    return x * 1.0


off.gradient(x=lambda g: g * 1.001)  # what goes through it has a gradient that is 0.1 % too large


@pytest.mark.parametrize("name", ["tanh", "linear"])
def test_a_rule_that_is_off_by_a_thousandth_is_found(name):
    """And the program that fails is shown."""
    right = names()[name]
    with pytest.raises(AssertionError, match=r"(first|second) gradient") as caught:
        run_programs(500, phases=[Phase.generate], **{name: lambda *args, **keywords: off(right(*args, **keywords))})
    assert f"{name}(" in "\n".join(caught.value.__notes__)
