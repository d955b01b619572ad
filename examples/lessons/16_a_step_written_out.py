# %% [markdown]
# # Lesson 16: A step, written out
#
# An engine hides what it does: one calls `backward()`, and the gradients are there. This lesson has the engine write
# down every operation of one step of training a Transformer, forward and backward, as a program that needs NumPy alone.
# Then we read that program. There is nothing else in it: all that the lessons before derived stands there, in order.
#
# **Afterwards you know** what a training step computes from the first line to the last, in which order the gradients
# come, where dA, D and dS of an attention are, and what the forward pass has to keep for the backward pass.
#
# ## The file
#
# The model has one layer in the encoder and one in the decoder, two heads, 8 features, and weights as they are before
# any training. It reads one sentence of four tokens, and the loss is the cross-entropy of three. For a trained run,
# `python -m transformer write-out RUN "source" "target" --out step.py` writes the same.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
import ast
import re
import textwrap
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import inspect

from transformer import Transformer, TransformerConfig

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
mg.manual_seed(16)
config = TransformerConfig(7, 7, d_model=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, d_ff=16,
                           dropout=0.0)
model = Transformer(config).to(dtype="float64")
SOURCE, LABELS = [[5, 3, 6, 2]], [[4, 6, 2]]
text, arrays = inspect.program(lambda: model.loss(SOURCE, LABELS), model)
(PICTURES / "16_step.py").write_text(text, encoding="utf-8")

*parts, step = text.split("\n\n\n")
functions = {part.split("(")[0].removeprefix("def "): part for part in parts if part.startswith("def ")}
forward, backward = step.split("    # the backward\n")
print(parts[0])
print("functions:", *functions, sep="\n  ")
print(f"lines: {sum(part.count(chr(10)) for part in functions.values())} in functions, {forward.count(chr(10))} of the "
      f"forward, {backward.count(chr(10))} of the backward; {len(arrays)} arrays")

# %% [markdown]
# It imports NumPy and nothing else. `step(p)` is the whole step: it takes the weights by name, `p["…"]`, and returns
# the loss and a gradient for each weight. A kind of layer that occurs several times is a function. One line is one
# operation, and a value without a name of its own is `t`.
#
# ## Forward: attention
#
# Here is an attention, from queries, keys and values to the context.

# %%
print(functions["multi_head_attention"])

# %% [markdown]
# Read it with the formulas of lesson 12 beside it. The first six lines split the heads. `t @ t_2` is QKᵀ/√d_k, with the
# division done first, on Q (√4 = 2, so it is a factor of one half). Then the softmax of lesson 2: the largest score of
# each row is subtracted, `exp`, the sum, the quotient. The lines with `-np.inf` and `== 0` are for rows that may see
# nothing (lesson 5). `weights` is A, `weights @ …` is AV, and the last two lines join the heads.
#
# The function returns `weights` as well as the context. Nothing further on in the forward pass reads them.
#
# ## The loss, and the first gradient
#
# Now the end of the forward pass, and the beginning of the backward.


# %%
def between(code: str, first: str, last: str) -> str:
    """The lines from the one that begins with `first` to the one that begins with `last`, with short names."""
    lines = [re.sub(r'p\["[^"]*\.(\w+\.\w+)"\]', r'p["…\1"]', line.strip()) for line in code.splitlines()]
    starts = [next(i for i, line in enumerate(lines) if line.startswith(start)) for start in (first, last)]
    return "\n".join(lines[starts[0]:starts[1] + 1])


print(between(forward, "losses = ", "loss = "))
print("...")
print(between(backward, "d_loss", "d_linear"))

# %% [markdown]
# The loss is log Σ eᶻ minus the logit of the label, by row, then a sum over three tokens, then a third of it. Its own
# gradient is 1. Backwards, each of the three rows gets a third. `difference` is the softmax p of the logits; from the
# entry of the label, 1 is subtracted, in place. That is p − y of lesson 14. Times the third, it is the gradient of the
# logits.
#
# ## The order
#
# From here on the backward pass goes through the layers in the reverse order. Each line of `step` that belongs to a
# module says so in its comment, so we can list the modules both ways.

# %%
def modules(code: str) -> list[str]:
    """The modules whose comments stand in the code, in order, each once."""
    return list(dict.fromkeys(re.findall(r"# ([a-z]\S*) \(\w+\)$", code, re.MULTILINE)))


ways = modules(forward), modules(backward)
SHORT = {"self_attention": "self", "cross_attention": "cross", "feed_forward": "ff", "layers.0.": "", "_residual": "+"}


def shortened(name: str) -> str:
    """A shorter name for a module: `+` is a residual connection."""
    for long, short in SHORT.items():
        name = name.replace(long, short)
    return name


for way, passed in zip(("forward: ", "backward: "), ways, strict=True):
    print(textwrap.fill(way + ", ".join(map(shortened, passed)), 110, subsequent_indent="  ", break_on_hyphens=False))

# %% [markdown]
# The decoder comes first, from the loss at its end to its words, and only then the encoder. (The three projections of
# an attention do not need one another, so their order is free.) The encoder has no loss of its own: what it gets is
# what the keys and values of the cross-attention send back (lesson 10). Those are two gradients of one value, and a
# value that was used twice gets their sum. So does every value that a residual connection leads past a layer.

# %%
sums = re.findall(r"^ +(\w+ = \w+ \+ \w+|\w+\[\.\.\.\] = \w+ \+ \w+)  #", backward, re.MULTILINE)
print("gradients that meet:", *sums, sep="\n  ")

# %% [markdown]
# ## Backward: attention
#
# And this is what the course was about.

# %%
print(functions["multi_head_attention_backward"])

# %% [markdown]
# `heads` is dO: the gradient from above, split by heads. The lines that matter, and what lesson 12 calls them:
#
# - `grad_value = t @ heads` is dV = AᵀdO.
# - `grad_kept = heads @ t_2` is dA = dO Vᵀ.
# - `t_4 = t_3.sum(axis=-1, keepdims=True)` is D: of each row, the sum of A ∘ dA.
# - `grad_scores = weights * t_5` is dS = A ∘ (dA − D).
# - `grad_query = grad_scores @ t_6` is dQ = dS K/√d_k.
# - `grad_key = t_7 @ t_8` is dK = dSᵀQ/√d_k.
#
# It takes `weights`, `queries`, `keys` and `values` from the forward pass. That is why the forward returned the
# weights.
#
# ## It is right
#
# We run the program, hold it to the engine, and then nudge one weight: the loss must change as its gradient says.

# %%
names = {}
exec(text, names)
loss, gradients = names["step"](arrays)
by_engine = mg.grad(model.loss(SOURCE, LABELS), list(model.parameters()))
apart = max(np.abs(gradients[name] - gradient.numpy()).max()
            for (name, _), gradient in zip(model.named_parameters(), by_engine, strict=True))
print(f"loss {loss:.4f}; gradients of {len(gradients)} weights differ from the engine's by {apart:.0e} at most")
WEIGHT, NUDGE = "encoder.layers.0.self_attention.query.weight", 1e-5
tried = []
for nudge in (NUDGE, -NUDGE):
    changed = arrays[WEIGHT].copy()
    changed[0, 0] += nudge
    tried.append(names["step"](arrays | {WEIGHT: changed})[0])
measured = (tried[0] - tried[1]) / (2 * NUDGE)
print(f"{WEIGHT}[0, 0]: measured {measured:.4e}, the program says {gradients[WEIGHT][0, 0]:.4e}")


# %% [markdown]
# The picture has a point for each line of `step`: to the right the lines, upwards the modules in the order of the
# forward pass. The forward climbs, the backward comes down. The grey lines lead from a value to where the
# backward reads it again.

# %%
def statements(code: str) -> list[tuple[set[str], set[str], int]]:
    """Of each statement the names that it sets, those that it reads, and its line."""
    found = []
    for node in ast.parse(code).body[0].body:
        parts = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        written = {part.id for part in parts if isinstance(part.ctx, ast.Store)} - {"_"}
        found.append((written, {part.id for part in parts} - written, node.lineno))
    return found


lines = step.splitlines()
border = lines.index("    # the backward") + 1
heights, module = {}, ways[0][0]
for number, line in enumerate(lines, 1):
    comment = re.search(r"# ([a-z]\S*) \(\w+\)$", line)
    module = comment[1] if comment else module
    heights[number] = ways[0].index(module)
*body, _ = statements(step)
made = {name: number for written, _, number in body if number < border for name in written}
kept = {name: number for _, read, number in body if number > border for name in read if name in made}

figure = Figure(figsize=(8, 5), layout="constrained")
axes = figure.subplots()
for name, number in kept.items():
    axes.plot([made[name], number], [heights[made[name]], heights[number]], color="#d0d7de", linewidth=0.7, zorder=0)
for label, colour, after in (("forward", "#d55e00", False), ("backward", "#0072b2", True)):
    numbers = [number for _, _, number in body if (number > border) == after]
    axes.plot(numbers, [heights[number] for number in numbers], ".", color=colour, label=label)
axes.set(yticks=range(len(ways[0])), xlabel="line of step(p)", title="a step: up, and down the same way")
axes.set_yticklabels(map(shortened, ways[0]), fontsize=7)
axes.legend(frameon=False, loc="upper left")
figure.savefig(PICTURES / "16_a_step_written_out.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# Take a sheet of paper, and cross out in the forward pass every value that the backward pass never reads. How many are
# left, and which of them grow with the square of the sentence's length?

# %% [markdown]
# ## The answer
#
# Those on the grey lines. An engine must keep these from the forward to the backward, and they are what a step of
# training needs memory for, beside the weights. The scores are not among them: the gradient of the softmax takes its
# output. Only the weights of an attention are T × S, for each head. Lesson 12 ends with how to do without them, and
# [watching a computation](../../docs/inspecting.md) shows how to count the bytes.

# %%
print(f"{len(made)} values of the forward, of which the backward reads {len(kept)}:")
print(textwrap.fill(", ".join(kept), 110))
