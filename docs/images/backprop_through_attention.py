"""Draws the two figures of docs/backprop_through_attention.md: python docs/images/backprop_through_attention.py

    backprop_through_attention_flow.svg     each tensor with its shape, forwards on the left and backwards on the right
    backprop_through_attention_softmax.svg  one row of the softmax: A, dA, D and dS
"""

from html import escape
from pathlib import Path

import numpy as np

from minigrad import Tensor
from minigrad import functional as F

STYLE = """<style>
text{font-family:ui-sans-serif,system-ui,'DejaVu Sans',sans-serif;font-size:13px;fill:#1b1f24;text-anchor:middle}
.head{font-size:15px;font-weight:600}.small{font-size:11px;fill:#57606a}.start{text-anchor:start}
.page{fill:#ffffff}.box{fill:#ffffff;stroke:#6e7781}.forward{stroke:#0072b2}.backward{stroke:#d55e00}
.parameter{stroke:#009e73;stroke-dasharray:4 3}.line{fill:none;stroke:#6e7781;stroke-width:1.2}.tip{fill:#6e7781}
.axis{stroke:#6e7781;stroke-width:1}.weight{fill:#0072b2}.dot{fill:#d55e00}.d{stroke:#d55e00;stroke-dasharray:6 4}
.plus{fill:#e69f00}.minus{fill:#7b5ea7}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9aa4af}.page{fill:#0d1117}.box{fill:#161b22}
.line,.axis{stroke:#9aa4af}.tip{fill:#9aa4af}.weight{fill:#56b4e9}}
</style>"""


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """An SVG of that size; its background is white, or dark where the page around it is."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}">\n<title>{escape(title)}</title>\n{STYLE}\n'
            f'<rect class="page" width="{width}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n")


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words at a place."""
    return f'<text x="{x:g}" y="{y:g}"{f""" class="{kind}" """ if kind else ""}>{escape(words)}</text>'


# --- The flow ----------------------------------------------------------------------------------------------

ROW, BOX = 62, 40  # from one row to the next; the height of a box
Q_COLUMN, K_COLUMN, V_COLUMN, SCORES, OUT = 78, 228, 378, 153, 265  # middles of the columns in a panel
PANEL = 480  # from the panel of the forward pass to that of the backward pass
TOP = 62

#        name, middle, row, width, forward, shape, backward
BOXES = [
    ("X", Q_COLUMN, 0, 136, "X", "T × D", "dX = dQ W_Qᵀ"),
    ("M", 303, 0, 286, "M  (X in self-attention)", "S × D", "dM = dK W_Kᵀ + dV W_Vᵀ"),
    ("WQ", Q_COLUMN, 1, 136, "W_Q, b_Q", "D × d_k, d_k", "dW_Q = Xᵀ dQ"),
    ("WK", K_COLUMN, 1, 136, "W_K, b_K", "D × d_k, d_k", "dW_K = Mᵀ dK"),
    ("WV", V_COLUMN, 1, 136, "W_V, b_V", "D × d_k, d_k", "dW_V = Mᵀ dV"),
    ("Q", Q_COLUMN, 2, 136, "Q = X W_Q + b_Q", "T × d_k", "dQ = dR K"),
    ("K", K_COLUMN, 2, 136, "K = M W_K + b_K", "S × d_k", "dK = dRᵀ Q"),
    ("V", V_COLUMN, 2, 136, "V = M W_V + b_V", "S × d_k", "dV = A′ᵀ dO"),
    ("R", SCORES, 3, 220, "R = Q Kᵀ", "T × S", "dR = dS / √d_k"),
    ("S", SCORES, 4, 220, "S = R / √d_k", "T × S", "dS = dS̄, and 0 where masked"),
    ("Sm", SCORES, 5, 220, "S̄ = S, and −∞ where masked", "T × S", "dS̄ = A ∘ (dA − D)"),
    ("A", SCORES, 6, 220, "A = softmax(S̄), row by row", "T × S", "dA = dA′ ∘ m / (1 − p)"),
    ("Ad", SCORES, 7, 220, "A′ = A ∘ m / (1 − p)", "T × S", "dA′ = dO Vᵀ"),
    ("O", OUT, 8, 220, "O = A′ V", "T × d_k", "dO = the head's columns of dC"),
    ("C", OUT, 9, 220, "C = all O side by side", "T × D", "dC = dY W_Oᵀ"),
    ("WO", OUT, 10, 220, "W_O, b_O", "D × D, D", "dW_O = Cᵀ dY"),
    ("Y", OUT, 11, 220, "Y = C W_O + b_O", "T × D", "dY, from the loss"),
]
ARROWS = [("X", "WQ"), ("M", "WK"), ("M", "WV"), ("WQ", "Q"), ("WK", "K"), ("WV", "V"), ("Q", "R"), ("K", "R"),
          ("R", "S"), ("S", "Sm"), ("Sm", "A"), ("A", "Ad"), ("Ad", "O"), ("V", "O"), ("O", "C"), ("C", "WO"),
          ("WO", "Y")]


def arrow(x: float, start: float, end: float) -> str:
    """A line straight down, or up, with a tip at its end."""
    back = end - 8 if end > start else end + 8
    return (f'<path class="line" d="M{x:g} {start:g}V{back:g}"/>'
            f'<polygon class="tip" points="{x:g},{end:g} {x - 4:g},{back:g} {x + 4:g},{back:g}"/>')


def middle(upper: str, lower: str) -> float:
    """Where an arrow runs straight from one box down to another: in the middle of the narrower one."""
    (_, x_upper, _, width_upper, *_), (_, x_lower, _, width_lower, *_) = (
        next(box for box in BOXES if box[0] == name) for name in (upper, lower))
    if lower == "O":
        return V_COLUMN - 20 if upper == "V" else SCORES + 40  # where they overlap
    return x_upper if width_upper <= width_lower else x_lower


def flow() -> str:
    """Both passes, the same tensors at the same places."""
    parts = [text(OUT - 37, 28, "forward: down", "head"), text(OUT - 37 + PANEL, 28, "backward: up", "head"),
             text(OUT - 37, 46, "values and their shapes, of one head and one sentence", "small"),
             text(OUT - 37 + PANEL, 46, "gradients; each has the shape of its value", "small")]
    tops = {name: TOP + row * ROW for name, _, row, *_ in BOXES}
    for upper, lower in ARROWS:
        x, y0, y1 = middle(upper, lower), tops[upper] + BOX + 1, tops[lower] - 1
        parts += [arrow(x, y0, y1), arrow(x + PANEL, y1, y0)]
    for name, x, _, width, forward, shape, backward in BOXES:
        for shift, kind, words in ((0, "forward", forward), (PANEL, "backward", backward)):
            below = shape
            if name.startswith("W"):
                kind = "parameter"
                below = f"db_{name[1]} = Σ rows of d{name[1].replace('O', 'Y')}" if shift else shape
            left = x - width / 2 + shift
            parts += [f'<rect class="box {kind}" x="{left:g}" y="{tops[name]}" width="{width}" height="{BOX}" rx="6"/>',
                      text(x + shift, tops[name] + 17, words), text(x + shift, tops[name] + 33, below, "small")]
    return picture(2 * PANEL - 24, TOP + 11 * ROW + BOX + 14,
                   "Attention forwards and backwards, each tensor with its shape", parts)


# --- One row of the softmax --------------------------------------------------------------------------------

SCORES_OF_ROW = np.array([1.0, 0.2, -0.5, 1.6, -np.inf])  # the query may not attend to key 4
GRADIENTS_OF_ROW = np.array([0.9, -0.6, 0.3, -0.8, 1.2])  # dA, which knows nothing of the mask
LEFT, STEP, WIDTH = 120, 110, 60  # of the first bar's middle; from bar to bar; of a bar


def softmax_row() -> str:
    """A, then dA with its weighted mean D, then dS: three strips over the same keys."""
    scores = Tensor(SCORES_OF_ROW, requires_grad=True)
    weights = F.softmax(scores)
    weights.backward(GRADIENTS_OF_ROW)
    A, dA, dS = weights.detach().numpy(), GRADIENTS_OF_ROW, scores.grad.numpy()
    D = float(A @ dA)
    places = LEFT + STEP * np.arange(len(A))
    end = float(places[-1]) + 55
    zero, scale = {"A": 130.0, "dA": 235.0, "dS": 385.0}, {"A": 90.0, "dA": 48.0, "dS": 170.0}
    parts = [f'<line class="axis" x1="60" y1="{y:g}" x2="{end:g}" y2="{y:g}"/>' for y in zero.values()]
    for name, kind in (("A", "head"), ("dA", "head"), ("dS", "head")):
        parts.append(text(30, zero[name] + 5, name, kind))
    for x, a, da, ds in zip(places, A, dA, dS, strict=True):
        parts += [bar(x, zero["A"], a * scale["A"], "weight"),
                  bar(x, zero["dS"], ds * scale["dS"], "plus" if ds > 0 else "minus"),
                  f'<circle class="dot" cx="{x:g}" cy="{zero["dA"] - da * scale["dA"]:.1f}" r="6"/>',
                  text(x, zero["A"] - a * scale["A"] - 6, number(a)),
                  text(x + 11, zero["dA"] - da * scale["dA"] + 5, number(da), "start"),
                  text(x, zero["dS"] - ds * scale["dS"] + (-6 if ds >= 0 else 17), number(ds))]
    level = zero["dA"] - D * scale["dA"]
    parts += [f'<line class="d" x1="60" y1="{level:.1f}" x2="{end:g}" y2="{level:.1f}"/>',
              text(end + 8, level + 5, f"D = Σ A dA = {number(D)}", "start"),
              text(end + 8, zero["A"] - 40, "the weights of one query, Σ A = 1", "start small"),
              text(end + 8, zero["dS"] + 5, "dS = A ∘ (dA − D), Σ dS = 0", "start"),
              text(end + 8, zero["dS"] + 23, "above D: up; below D: down; no weight: 0", "start small")]
    parts += [text(x, 24, f"key {j}" + (", masked" if a == 0 else ""), "small") for j, (x, a) in
              enumerate(zip(places, A, strict=True))]
    return picture(int(end) + 255, 470, "The backward pass of a softmax, one row", parts)


def bar(x: float, zero: float, height: float, kind: str) -> str:
    """A bar up from the line at `zero`, or down from it."""
    return (f'<rect class="{kind}" x="{x - WIDTH / 2:g}" y="{min(zero, zero - height):.1f}" width="{WIDTH}" '
            f'height="{abs(height):.1f}"/>')


def number(value: float) -> str:
    """Two digits, with a true minus."""
    return f"{value:.2f}".replace("-", "−")


if __name__ == "__main__":
    for name, drawn in (("flow", flow()), ("softmax", softmax_row())):
        Path(__file__).with_name(f"backprop_through_attention_{name}.svg").write_text(drawn, encoding="utf-8")
