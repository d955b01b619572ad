"""The pictures: what is drawn, what is refused, what is needed, and the numbers behind them."""

import sys

import numpy as np
import pytest

import minigrad

from tests.transformer.tiny import LABELS, SOURCE, tiny_model
from transformer import trace
from transformer.explore.plots import (
    cross_attention,
    gradient_norms,
    plot_attention,
    plot_gradient_flow,
    plot_history,
)
from transformer.explore.plots.figure import new_figure

# --------------------------------------------------------------------------- figures


def labelled(text):
    with new_figure((2, 2)) as figure:
        figure.subplots().set(title=text, xlabel=text)
        figure.text(0.5, 0.5, text)
    return figure


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"\[plot\]"):
        labelled("x")


ROWS = [{"step": 100 * i, "train_loss": 3 / i, "valid_loss": 4 / i, "metric": i / 10} for i in (1, 2, 3)]


def test_history_shows_the_losses_and_the_metric(tmp_path):
    left, right = plot_history(ROWS).axes
    training, validation = left.get_lines()
    assert training.get_xdata().tolist() == [100, 200, 300]
    assert training.get_ydata().tolist() == [3, 1.5, 1]
    assert validation.get_ydata().tolist() == [4, 2, 4 / 3]
    assert right.get_lines()[0].get_ydata().tolist() == [10, 20, pytest.approx(30)]
    path = tmp_path / "log.csv"
    path.write_text("step,train_loss,valid_loss,metric,seconds\n10,2.5,2,31.5,1\n20,1.5,1,33.5,2\n", encoding="utf-8")
    for given in (path, str(tmp_path)):  # the folder of a run has its log
        right = plot_history(given, metric="bleu").axes[1]
        assert right.get_lines()[0].get_ydata().tolist() == [31.5, 33.5]  # a BLEU is no share


def test_history_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no rows"):
        plot_history([])
    with pytest.raises(ValueError, match="'wer'"):
        plot_history(ROWS, metric="wer")


# --------------------------------------------------------------------------- attention


def weights(heads, rows, columns):
    return np.random.default_rng(5).dirichlet(np.ones(columns), (heads, rows))


def labels(axis_labels):
    return [label.get_text() for label in axis_labels]


def test_attention_has_a_panel_for_each_head(tmp_path):
    attention = weights(3, 2, 4)
    figure = plot_attention(attention, ["a", " ", "$x", "<eos>"], ["b", "<eos>"], title="$x")
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["head 0", "head 1", "head 2"]
    assert bar.get_ylim() == (0, 1)
    for axes, head in zip(panels, attention, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
        assert axes.images[0].get_clim() == (0, 1)
        assert labels(axes.get_xticklabels()) == ["a", "␣", "$x", "<eos>"]
        assert labels(axes.get_yticklabels()) == ["b", "<eos>"]
    figure.savefig(tmp_path / "attention.png")  # "$x" would be an error if it were read as a formula


def test_a_traced_attention_is_drawn(device):
    model = tiny_model(device=device)
    with trace(model) as traced:
        model.loss(SOURCE, LABELS)
    traced_weights = traced["decoder.layers.0.cross_attention"].weights  # (2, 2, 4, 5)
    figure = plot_attention(traced_weights[1], "abcde", "wxyz")
    for axes, head in zip(figure.axes[:-1], traced_weights.numpy()[1], strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), head)
    with pytest.raises(ValueError, match=r"got \(2, 2, 4, 5\)"):
        plot_attention(traced_weights, "abcde", "wxyz")


def test_cross_attention_is_what_the_layer_uses(device):
    """Against what a trace of the model shows."""
    model = tiny_model(num_decoder_layers=2, device=device).eval()
    with minigrad.no_grad(), trace(model) as traced:
        model([[5, 3, 9, 7, 2]], [[1, 6, 10]])
    for number in range(2):
        found = cross_attention(model, [5, 3, 9, 7, 2], [6, 10, 2], layer=number)
        expected = traced[f"decoder.layers.{number}.cross_attention"].weights.numpy()[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, cross_attention(model, [5, 3, 9, 7, 2], [6, 10, 2]))  # the last by default
    with pytest.raises(IndexError, match="layer 2"):
        cross_attention(model, [5, 2], [6, 2], layer=2)


# --------------------------------------------------------------------------- gradient flow


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
