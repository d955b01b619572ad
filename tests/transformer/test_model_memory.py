"""Graphs of the whole model are freed as soon as they are dropped, without the garbage collector."""

import gc

import pytest

import minigrad
from minigrad.tape import Node

from tests.transformer.tiny import LABELS, SOURCE, tiny_model

FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "by steps"])


def live_nodes():
    return sum(isinstance(thing, Node) for thing in gc.get_objects())


@pytest.mark.parametrize("after", ["nothing", "backward", "grad", "grad of grad"])
@FUSED
def test_a_dropped_loss_leaves_no_node_behind_without_the_collector(after, fused):
    model = tiny_model(dropout=0.2)
    gc.collect()
    gc.disable()
    try:
        before = live_nodes()
        with minigrad.fused(fused):
            loss = model.loss(SOURCE, LABELS, 0.1)
            assert live_nodes() > before + 50
            if after == "backward":
                loss.backward()
            elif after != "nothing":
                parameters = list(model.parameters())
                gradients = minigrad.grad(loss, parameters, create_graph=after == "grad of grad")
                if after == "grad of grad":
                    minigrad.grad(gradients[0].sum(), parameters[1:3])
                del gradients
        del loss
        assert live_nodes() == before
    finally:
        gc.enable()


def test_tapped_tensors_keep_their_graph_no_longer_than_they_live():
    model, kept = tiny_model(), []

    def keep(name, tensor):
        kept.append((name, tensor))
        tensor.retain_grad()
        return tensor

    gc.collect()
    gc.disable()
    try:
        before = live_nodes()
        with minigrad.tapping(keep):
            model.loss(SOURCE, LABELS, 0.1).backward()
        assert all(tensor.grad is not None for _, tensor in kept)
        assert [name for name, _ in kept].count("scores") == 3
        kept.clear()
        assert live_nodes() == before
    finally:
        gc.enable()
