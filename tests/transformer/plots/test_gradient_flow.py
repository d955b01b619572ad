"""How much gradient reaches each layer: the numbers, how parameters are grouped, what is drawn, what is refused."""

import numpy as np
import pytest

from minigrad import nn

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer.explore.plots import gradient_norms, plot_gradient_flow

ATTENTION = ["self-attention query", "self-attention key", "self-attention value", "self-attention output"]
CROSS = [kind.replace("self", "cross") for kind in ATTENTION]


def after_backward(**changes):
    model = tiny_model(num_encoder_layers=2, num_decoder_layers=3, **changes)
    model.loss(SOURCE, LABELS).backward()
    return model


def test_the_norm_is_that_of_all_numbers_of_the_group(device):
    model = after_backward(positions="learned", device=device)
    norms = gradient_norms(model)
    assert set(norms["encoder.layers.1"]) == {*ATTENTION, "feed-forward", "norms"}
    assert set(norms["decoder.embedding"]) == {"embeddings"}
    layer = model.decoder.layers[1]
    for place, kind, modules in [
        ("decoder.layers.1", "cross-attention key", [layer.cross_attention.key]),
        ("decoder.layers.1", "feed-forward", [layer.feed_forward]),
        ("decoder.layers.1", "norms", [layer.self_attention_residual, layer.cross_attention_residual,
                                       layer.feed_forward_residual]),
        ("encoder.embedding", "embeddings", [model.encoder.embedding]),
    ]:
        grads = [parameter.grad.numpy().ravel() for module in modules for parameter in module.parameters()]
        assert len(grads) > 1
        assert norms[place][kind] == pytest.approx(np.linalg.norm(np.concatenate(grads)), rel=1e-12)
    total = np.sqrt(sum(norm**2 for kinds in norms.values() for norm in kinds.values()))
    everything = [parameter.grad.numpy().ravel() for parameter in model.parameters()]
    assert total == pytest.approx(np.linalg.norm(np.concatenate(everything)), rel=1e-12)


def lines(figure):
    """label -> the heights over the places, of all lines of that colour and style."""
    found = {}
    for line in figure.axes[0].get_lines():
        if not line.get_label().startswith("_"):
            found[line.get_label()] = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    return found


def test_a_line_for_each_kind():
    model = after_backward()
    norms = gradient_norms(model)
    figure = plot_gradient_flow(model)
    [axes] = figure.axes
    assert axes.get_yscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "encoder embedding", "encoder 0", "encoder 1", "encoder norm",
        "decoder embedding", "decoder 0", "decoder 1", "decoder 2", "decoder norm", "projection"]
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *ATTENTION, *CROSS, "feed-forward", "norms", "embeddings", "projection"]
    drawn = lines(figure)
    assert drawn["cross-attention value"] == {
        5 + number: norms[f"decoder.layers.{number}"]["cross-attention value"] for number in range(3)}
    assert drawn["projection"] == {9: norms["projection"]["projection"]}
    points = sum(len(line.get_xdata()) for line in axes.get_lines())
    assert points == sum(len(kinds) for kinds in norms.values())
    for line in axes.get_lines():  # none leads from the encoder to the decoder
        assert not (min(line.get_xdata()) < 4 < max(line.get_xdata()))


def test_a_gradient_of_exactly_nothing_is_seen(tmp_path):
    model = after_backward()
    for parameter in model.decoder.layers[1].cross_attention.key.parameters():
        parameter.grad[...] = 0.0
    figure = plot_gradient_flow(model)
    [axes] = figure.axes
    [text] = axes.texts
    assert text.get_text() == "exactly 0"
    [mark] = [line for line in axes.get_lines() if line.get_fillstyle() == "none"]
    least = min(norm for kinds in gradient_norms(model).values() for norm in kinds.values() if norm > 0)
    assert mark.get_xdata() == [6]
    assert 0 < mark.get_ydata()[0] < least
    assert np.isnan(lines(figure)["cross-attention key"][6])
    figure.savefig(tmp_path / "flow.png")
    for parameter in model.parameters():
        parameter.grad[...] = 0.0
    plot_gradient_flow(model).savefig(tmp_path / "flat.png")


def test_a_part_another_model_and_what_is_frozen():
    model = after_backward()
    assert list(gradient_norms(model.encoder)) == ["embedding", "layers.0", "layers.1", "norm"]
    own = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    own(np.ones((4, 2), np.float32)).sum().backward()
    assert {place: list(kinds) for place, kinds in gradient_norms(own).items()} == {"0": ["other"], "2": ["other"]}
    assert list(lines(plot_gradient_flow(own))["other"]) == [0, 1]
    model = tiny_model()
    for parameter in model.encoder.parameters():
        parameter.requires_grad = False
    model.loss(SOURCE, LABELS).backward()
    assert list(gradient_norms(model)) == ["decoder.embedding", "decoder.layers.0", "decoder.norm", "projection"]


def test_what_cannot_be_drawn():
    model = tiny_model()
    with pytest.raises(ValueError, match="call backward"):
        plot_gradient_flow(model)
    model.loss(SOURCE, LABELS).backward()
    model.decoder.norm.bias.grad[0] = np.nan
    with pytest.raises(ValueError, match=r"decoder\.norm\.bias"):
        plot_gradient_flow(model)
    with pytest.raises(TypeError, match="float"):
        plot_gradient_flow(3.0)
