# %% [markdown]
# # Lesson 13: Layer norm, backwards
#
# A Transformer sends each token through a *layer norm* two or three times a layer. Forwards it is three lines: take off
# the mean, divide by the standard deviation, scale and shift. Backwards it has three terms, and two of them are easily
# forgotten. We find the gradient twice, once from what it must satisfy and once on paper, and then see what the norm
# does to a gradient on its way through 24 layers.
#
# **Afterwards you know** the three terms and what each is for, in which two directions no gradient leaves a layer norm,
# why small tokens get large gradients, what ε does to a constant token, why a forgotten term is hard to notice, and
# what differs between a norm before the sublayer and one after it.
#
# ## Forward
#
# The norm takes each token by itself. For one token x of D features (Ba, Kiros and Hinton 2016, arXiv:1607.06450):
#
# $$\mu = \frac{1}{D}\sum_i x_i \qquad v = \frac{1}{D}\sum_i (x_i - \mu)^2 \qquad \sigma = \sqrt{v + \varepsilon}
# \qquad \hat{x} = \frac{x - \mu}{\sigma} \qquad y = \gamma \circ \hat{x} + \beta$$
#
# γ and β are learnt, one number for each feature, the same for all tokens. ε is tiny, 10⁻⁵ as a rule, and 0 until we
# need it. We take a token that can be done in the head, [0, 2, 2, 8]: mean 3, variance 9.

# %% tags=["active-py"]
if "get_ipython" not in globals():  # run as a program: print the prose as well
    import story

    story.tell()

# %%
# %matplotlib inline
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import minigrad as mg
from minigrad import Tensor, nn
from minigrad import functional as F

from transformer.model.layers import EncoderLayer

PICTURES = Path("runs/lessons")
PICTURES.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(13)

x = np.array([0.0, 2.0, 2.0, 8.0])
x_hat = (x - x.mean()) / x.std()
print("mean", x.mean(), " standard deviation", x.std(), " x̂ =", np.round(x_hat, 4))

# %% [markdown]
# ## What the gradient must satisfy
#
# Write h for dx̂, the gradient that arrives at x̂. Before any calculus, three things about dx are certain, whatever the
# loss is (for ε = 0):
#
# - **Shift.** Add the same number to all features: x̂ stays, so the loss stays. A gradient says how the loss moves along
#   a direction; along 1 = (1, …, 1) it does not move. So dx is orthogonal to 1: *its entries sum to 0*.
# - **Scale.** Stretch the token away from its mean: x̂ stays again. So dx is *orthogonal to x̂*.
# - **Size.** A token twice as large has the same x̂. It must move twice as far for the same change of x̂, so dx is *half
#   as large*: it goes with 1/σ.
#
# The vectors 1 and x̂ are orthogonal, as x̂ sums to 0, and both have squared length D. So it is easy to take from h its
# parts along them, and we can guess:
#
# $$dx = \frac{1}{\sigma}\Big(h - \mathrm{mean}(h) - \hat{x}\,\mathrm{mean}(h \circ \hat{x})\Big)$$
#
# ## On paper
#
# The guess is right. The feature xᵢ reaches the loss by three paths, since every x̂ⱼ = (xⱼ − μ)/σ has μ and σ in it. And
# paths add (lesson 1). What comes back along each is
#
# $$\underbrace{\frac{h_i}{\sigma}}_{\text{itself}}
# \qquad \underbrace{\Big(-\sum_j \frac{h_j}{\sigma}\Big)\frac{1}{D}}_{\text{through } \mu}
# \qquad \underbrace{\Big(-\sum_j \frac{h_j \hat{x}_j}{\sigma}\Big)\frac{\hat{x}_i}{D}}_{\text{through } \sigma}$$
#
# In the middle, ∂x̂ⱼ/∂μ = −1/σ and ∂μ/∂xᵢ = 1/D. On the right, ∂x̂ⱼ/∂σ = −x̂ⱼ/σ, and from σ² = v + ε comes ∂σ/∂xᵢ =
# (xᵢ − μ)/(Dσ) = x̂ᵢ/D. (μ is also inside v, but ∂v/∂μ = −2·mean(x − μ) = 0.) The sum is the guess, now for any ε.
#
# In the head, for h = [4, 0, 0, 0]: mean(h) = 1 and mean(h ∘ x̂) = −1, so dx = ([4, 0, 0, 0] − 1 + x̂)/3.

# %%
h = np.array([4.0, 0.0, 0.0, 0.0])
dx = (h - h.mean() - x_hat * (h * x_hat).mean()) / x.std()
print("9·dx =", np.round(9 * dx, 12), f"  its sum {abs(dx.sum()):.0e}, its product with x̂ {abs(dx @ x_hat):.0e}")

# %% [markdown]
# The loss asked for the first feature alone. But that one takes the mean and the deviation along with it, and so all
# four features have a say.
#
# ## In NumPy
#
# Now a batch of two sentences of three tokens, with γ and β. Each token has its own μ and σ, so dx has means over
# *features*. γ and β serve all tokens, so their gradients are sums over *tokens*. We hold the result to the engine, and
# to finite differences of the loss ⟨G, y⟩, whose gradient at y is G.


# %%
def forward(x, gamma, beta, eps=1e-5):
    """y and x̂, (…, D) each, and σ, (…, 1)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + eps)
    return gamma * centred / sigma + beta, centred / sigma, sigma


def backward(G, x_hat, sigma, gamma):
    """dx, dγ and dβ for the gradient G of y."""
    tokens = tuple(range(G.ndim - 1))
    dgamma = (G * x_hat).sum(axis=tokens)  # forward: y = γ ∘ x̂ + β      so here: dγ = Σ G ∘ x̂
    dbeta = G.sum(axis=tokens)             #                             and here: dβ = Σ G
    h = G * gamma                          #                             and here: dx̂ = G ∘ γ
    through_mean = h.mean(axis=-1, keepdims=True)
    through_sigma = x_hat * (h * x_hat).mean(axis=-1, keepdims=True)
    dx = (h - through_mean - through_sigma) / sigma  # forward: x̂ = (x − μ) / σ     so here: the three terms
    return dx, dgamma, dbeta


B, T, D = 2, 3, 8
X, G = rng.normal(size=(2, B, T, D))
gamma, beta = rng.normal(size=(2, D))
_, X_hat, sigma = forward(X, gamma, beta)
hand = dict(zip(("x", "gamma", "beta"), backward(G, X_hat, sigma, gamma), strict=True))

inputs = {"x": X, "gamma": gamma, "beta": beta}
tensors = [Tensor(array, requires_grad=True) for array in inputs.values()]
F.layer_norm(*tensors).backward(G)
engine = {name: tensor.grad.numpy() for name, tensor in zip(inputs, tensors, strict=True)}


def tried(name, step=1e-6):
    """The gradient of one of the inputs by finite differences, a number at a time."""
    found = []
    for e in step * np.eye(inputs[name].size).reshape(-1, *inputs[name].shape):
        up, down = (forward(**inputs | {name: inputs[name] + move})[0] for move in (e, -e))
        found.append((G * (up - down)).sum() / (2 * step))
    return np.reshape(found, inputs[name].shape)


for name, gradient in hand.items():
    print(f"d{name:5} {gradient.shape!s:9} differs from the engine by {np.abs(gradient - engine[name]).max():.0e}, "
          f"from finite differences by {np.abs(gradient - tried(name)).max():.0e}")

# %% [markdown]
# ## What it looks like
#
# As a matrix, the derivative of x̂ by x is J = (I − 11ᵀ/D − x̂x̂ᵀ/D)/σ: a *projection*, divided by σ. It takes two of the
# D directions away and treats all others alike. Its singular values say so.
#
# A step against dx moves the token at right angles to itself. By Pythagoras the token gets *longer*: its variance grows
# by the mean square of the step. And a longer token has a smaller gradient. So what stands before a norm grows as it
# learns, and its steps shrink, all by themselves.

# %%
J = mg.func.jacobian(lambda t: F.layer_norm(t, eps=0.0))(Tensor(X[0, 0])).numpy()
print("singular values of J times σ:", np.abs(np.linalg.svd(J)[1] * X[0, 0].std()).round(6))
for size in (0.1, 1):
    dx = backward(G, *forward(size * X, gamma, beta, eps=0)[1:], gamma)[0]
    print(f"tokens times {size:3}: length of dx {np.linalg.norm(dx):6.3f}")
growth = (X - 0.5 * dx).var(axis=-1) - X.var(axis=-1)
print(f"growth of the variance less mean square of the step: {np.abs(growth - (0.5 * dx).var(axis=-1)).max():.0e}")

# %% [markdown]
# ## What ε does
#
# A constant token has σ = 0. Without ε its x̂ is 0/0, NaN, and one such token (padding, or a dead layer) spoils all
# weights for good. With ε it gets x̂ = 0 and dx = (h − mean(h))/√ε: finite, but for ε = 10⁻⁵ up to 316 times as long
# as h.
#
# So ε is a ceiling of the gain. Tokens much larger than √ε = 0.0032 do not notice it. Smaller ones are not brought to
# variance 1 any more. Then their scale *does* matter, and dx is no longer orthogonal to x̂.


# %%
def cosine(a, b):
    """Of the angle between two vectors or gradients: 1 if they point the same way."""
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


eps = 1e-5
with np.errstate(invalid="ignore"):
    print("a constant token without ε: x̂ =", forward(np.full(2, 3.0), 1.0, 0.0, eps=0)[1])
print(f"with ε: x̂ = {forward(np.full(2, 3.0), 1.0, 0.0)[1]}, gain 1/√ε = {eps ** -0.5:.0f}, √ε = {eps ** 0.5:.4f}")
for size in (1, 1e-2, 1e-3):
    _, small_hat, root = forward(size * X[0, 0], 1.0, 0.0)
    dx = backward(G[0, 0], small_hat, root, 1.0)[0]
    print(f"token times {size:5}: variance of x̂ {small_hat.var():.4f}, cosine of dx and x̂ {cosine(dx, small_hat):6.3f}")

# %% [markdown]
# ## Break it
#
# The famous mistake takes μ and σ for constants: someone reads x̂ = (x − μ)/σ and writes dx = h/σ. We leave out one
# term, the other, both; and then γ, which belongs in h.

# %%
H = G * gamma
mean_term, sigma_term = H.mean(axis=-1, keepdims=True), X_hat * (H * X_hat).mean(axis=-1, keepdims=True)
mistakes = {"nothing": hand["x"], "term through μ": (H - sigma_term) / sigma, "term through σ": (H - mean_term) / sigma,
            "both terms": H / sigma, "γ in h": backward(G, X_hat, sigma, 1.0)[0]}
print("left out        cosine  length  sum of a row  product with x̂ (largest)")
for left_out, wrong in mistakes.items():
    print(f"{left_out:14} {cosine(wrong, hand['x']):7.3f} {np.linalg.norm(wrong) / np.linalg.norm(hand['x']):7.3f} "
          f"{np.abs(wrong.sum(axis=-1)).max():9.3f} {np.abs((wrong * X_hat).sum(axis=-1)).max():12.3f}")
for width in (8, 64, 512):
    wide, g = rng.normal(size=(2, 1000, width))
    _, wide_hat, root = forward(wide, 1.0, 0.0)
    print(f"both terms, D = {width:3}: cosine {cosine(g / root, backward(g, wide_hat, root, 1.0)[0]):.3f}")

# %% [markdown]
# The two sums find the forgotten terms. They do not find a forgotten γ; only a comparison does. And look at the last
# three lines: the terms remove two directions of D. In a wide layer a random h has hardly anything there, and without
# them the cosine is 0.998. *One* wrong norm in a wide model is hard to see. What about 48 of them?
#
# ## Before or after
#
# The Transformer of 2017 has a norm after each sum, x ← LN(x + F(x)): *post-norm*. Most later ones have it inside the
# branch, x ← x + F(LN(x)): *pre-norm*. We stack up to 24 untrained encoder layers of 32 features, send random tokens
# forwards and a cross-entropy back, and look at the gradient between the layers: as it is; along the *straight* road
# alone, with all branches F cut off the tape; and with both terms left out in all 48 norms.


# %%
class Forgetful(nn.Module):
    """A layer norm whose backward takes μ and σ for constants."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) → (…, D)"""
        centred = x - x.mean(axis=-1, keepdims=True).detach()
        return centred / mg.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps).detach()


def travel(norm: str, depth: int, kind: str = "whole", width: int = 32, seed: int = 0) -> tuple[list, np.ndarray]:
    """The gradient of the tokens before the first and after each layer, and of W₂ of the last feed-forward."""
    mg.manual_seed(seed)
    rng = np.random.default_rng(seed)
    states = [Tensor(rng.normal(size=(4, 16, width)), requires_grad=True)]
    for _ in range(depth):
        layer = EncoderLayer(d_model=width, num_heads=4, d_ff=4 * width, norm=norm, dropout=0.0).to(dtype="float64")
        attention, feed_forward = layer.self_attention, layer.feed_forward
        if kind == "forgetful":
            layer.self_attention_residual.norm = layer.feed_forward_residual.norm = Forgetful()
        if kind == "straight":
            layer.self_attention = lambda *x, branch=attention: branch(*x).detach()
            layer.feed_forward = lambda x, branch=feed_forward: branch(x).detach()
        states.append(layer(states[-1]))
        states[-1].retain_grad()
    end = F.layer_norm(states[-1]) if norm == "pre" else states[-1]  # a pre-norm stack has one more norm at its end
    logits = end @ Tensor(rng.normal(size=(width, 10)) / width ** 0.5)
    F.cross_entropy(logits, rng.integers(0, 10, size=(4, 16))).backward()
    return [x.grad.numpy() for x in states], feed_forward.outer.weight.grad


DEPTHS = (3, 6, 12, 24)
lengths, turned, gained, last = {}, {}, {}, {}
for norm in ("pre", "post"):
    for kind in ("whole", "straight"):
        runs = [travel(norm, 24, kind, seed=seed)[0] for seed in range(3)]
        lengths[norm, kind] = np.mean([[np.linalg.norm(dx) for dx in run] for run in runs], axis=0)
        turned[norm, kind] = np.mean([cosine(run[0], run[-1]) for run in runs])
        if kind == "whole":
            gained[norm] = [np.linalg.norm(run[0]) / np.linalg.norm(run[-1]) for run in runs]
    last[norm] = [np.mean([np.linalg.norm(travel(norm, depth, seed=seed)[1].numpy()) for seed in range(3)])
                  for depth in DEPTHS]
print("24 layers (mean of 3 seeds): |dx| after layer  24       12        0    cosine of dx at 0 and at 24")
for (norm, kind), length in lengths.items():
    print(f"{f'{norm}-norm, {kind}':44}", *(f"{length[layer]:.1e} " for layer in (24, 12, 0)),
          f"  {turned[norm, kind]:5.2f}")
for norm, ratios in gained.items():
    print(f"{norm}-norm, whole: |dx| at 0 over |dx| at 24, of each seed:", *(f"{ratio:.2f}" for ratio in ratios))
for norm, found in last.items():
    print(f"{norm}-norm: |dW₂| of the last of 3, 6, 12, 24 layers:", *(f"{length:.2f}" for length in found))
print("both terms left out in all norms: cosine of dx at 0 with the right one, and its length over that one's")
for norm, width in (("post", 32), ("post", 128), ("pre", 32), ("pre", 128)):
    pairs = [[travel(norm, 24, kind, width, seed)[0][0] for kind in ("forgetful", "whole")] for seed in range(3)]
    print(f"{norm + '-norm,':10} D = {width:3}, of each seed: cosine", *(f"{cosine(*pair):5.2f}" for pair in pairs),
          " length", *(f"{np.linalg.norm(wrong) / np.linalg.norm(right):5.2f}" for wrong, right in pairs))

# %% [markdown]
# **Pre-norm.** Nothing stands on the residual path: what arrives at the top arrives at the bottom unchanged, and each
# branch adds its own on the way. But forwards the path is a sum that grows with every layer, and the norm at its end
# divides by its size. So the last layer gets the less gradient the more layers there are, 0.47 of 3 and 0.21 of 24. It
# also matters less to the sum: that is the price of pre-norm.
#
# **Post-norm.** The straight road leads through 48 norms, each divides by the size of a sum of two, and a twenty
# thousandth of the gradient is left. Yet the gradient as a whole does *not* vanish at the bottom, as one often reads:
# it comes by the branches. With one seed a seventh of it arrives, with the others more than was sent. These are random
# matrices as yet, and what is lost is the direction: the cosine is −0.02. And the last layer gets no less in a deep
# stack than in a flat one. Xiong et al. (2020, arXiv:2002.04745) bound its gradient for L layers by O(1), that of
# pre-norm by O(1/√L), and conclude that it is post-norm that needs a *warm-up*: small steps at first (lesson 15).
#
# **The mistake.** In the post-norm stack each norm's error passes all norms below it. At width 32 the cosine of what
# arrives is 0.37 at best, and with one seed it is 13.01 times too long; at width 128 the cosine is 0.57 or more.
# Pre-norm hides the mistake: after 48 wrong norms the cosine is 0.85 or more, at width 128 it is 0.96, and a gradient
# that points the right way trains. So hold each layer's gradient to finite differences, in a *small* layer.
#
# In the picture, top left, are tokens of three features, seen along the direction 1. With their means off they lie in
# a plane, and x̂ on a circle. Three tokens on one ray have the same x̂, and we give them the same h. Each dx is the part
# of h along the circle, over σ.

# %%
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
figure = Figure(figsize=(9.6, 8.2), layout="constrained")
(plane, gain), (stream, end) = figure.subplots(2, 2)

axes_of_plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
on_circle, asked = (np.array(place) @ axes_of_plane for place in ([1.52, 0.83], [-0.2, 1.1]))  # x̂ and h
_, on_circle, _ = forward(on_circle, 1.0, 0.0, eps=0)


def arrow(tail: np.ndarray, vector: np.ndarray, colour: str, name: str) -> None:
    """A vector of three features that sum to 0, from the point `tail` of the same kind."""
    start, tip = axes_of_plane @ tail, axes_of_plane @ (tail + vector)
    plane.annotate("", tip, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 0,
                                               "shrinkB": 0})
    plane.annotate(name, tip, (4, 2), textcoords="offset points", color=colour, fontsize=12)


angle = np.linspace(0, 2 * np.pi, 200)
plane.plot(np.sqrt(3) * np.cos(angle), np.sqrt(3) * np.sin(angle), color=GREY, linewidth=1)
plane.plot(*np.outer(axes_of_plane @ on_circle, [0, 2.3]), color=GREY, linestyle=":", linewidth=1)
arrow(on_circle, asked, GREY, "h")
for size in (0.4, 1.0, 2.0):
    token = size * on_circle
    arrow(token, backward(asked, *forward(token, 1.0, 0.0, eps=0)[1:], 1.0)[0], ORANGE, "dx" if size != 1 else "")
    plane.plot(*(axes_of_plane @ token), "o", color=BLUE, markersize=8)
    plane.annotate(f"σ = {size:g}{', x̂' if size == 1 else ''}", axes_of_plane @ token, (9, -12),
                   textcoords="offset points")
plane.plot(0, 0, "+", color=GREY)
plane.set(aspect="equal", xlim=(-2.3, 4.3), ylim=(-2.1, 3.3), xticks=[], yticks=[],
          title="one x̂ and one h: dx goes with 1/σ")

spreads = np.geomspace(1e-5, 10, 200)
gain.loglog(spreads, 1 / spreads, color=GREY, linestyle="--", label="1/σ, without ε")
gain.loglog(spreads, (spreads ** 2 + eps) ** -0.5, color=BLUE, label="orthogonal to x̂ and 1")
gain.loglog(spreads, eps * (spreads ** 2 + eps) ** -1.5, color=ORANGE, label="along x̂")
gain.axvline(eps ** 0.5, color=GREY, linestyle=":", linewidth=1)
gain.annotate("√ε", (eps ** 0.5, 2e-5), (5, 0), textcoords="offset points")
gain.set(xlabel="standard deviation of the token", ylabel="gain of the backward pass", ylim=(1e-5, 1e5),
         title="what ε = 10⁻⁵ does to the gain")
gain.legend(frameon=False)

for norm, colour, marker in [("pre", BLUE, "o"), ("post", ORANGE, "s")]:
    for kind, style, name in [("whole", "-", "the whole"), ("straight", ":", "straight road alone")]:
        stream.semilogy(lengths[norm, kind], color=colour, linestyle=style, linewidth=2, label=f"{norm}-norm, {name}")
    end.loglog(DEPTHS, last[norm], color=colour, marker=marker, label=f"{norm}-norm")
stream.set(xlabel="after layer", ylabel="‖dx‖", title="the gradient on its way (← backward)", xticks=range(0, 25, 6))
end.loglog(DEPTHS, last["pre"][0] * np.sqrt(3 / np.array(DEPTHS)), color=GREY, linestyle="--", label="1/√L")
end.set(xlabel="layers in the stack, L", ylabel="‖dW₂‖", title="the gradient of the last layer", ylim=(0.1, 2))
end.set_xticks(DEPTHS, DEPTHS)
end.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
end.minorticks_off()
for axes, place in ((stream, "lower right"), (end, "lower left")):
    axes.legend(frameon=False, loc=place, fontsize=9)
for axes in (gain, stream, end):
    axes.grid(alpha=0.3)
figure.savefig(PICTURES / "13_layer_norm_backward.png", dpi=100)
figure

# %% [markdown]
# ## A question
#
# A linear map stands right before a layer norm: y = LN(XW). Multiply W by 10. What becomes of y, and of dW? By how much
# does a step at the same learning rate now change W, compared with its size? And what is a weight decay on W good for?

# %% [markdown]
# ## The answer
#
# y stays (but for ε), since the norm removes the scale. dW is a tenth, as dx was, and a step that is a tenth as long
# moves a matrix that is ten times as large: relative to W it is a *hundredth*. Also, dW is orthogonal to W, so each
# step of plain gradient descent makes W longer, and the relative steps get smaller and smaller.
#
# A weight decay on W cannot make the function simpler: y does not depend on the size of W at all. It keeps W short, and
# so the relative steps large. It is a learning rate in disguise (van Laarhoven 2017, arXiv:1706.05350).
#
# Now you: the [exercise on layer norm](exercise_layer_norm.py) leaves every gradient of it to you.

# %%
W, outputs = rng.normal(size=(D, D)), []
for factor in (1, 10):
    weight = Tensor(factor * W, requires_grad=True)
    outputs.append(F.layer_norm(Tensor(X) @ weight, eps=0.0))
    outputs[-1].backward(G)
    dW, size = weight.grad.numpy(), np.linalg.norm(factor * W)
    print(f"{factor:2}·W: |dW| {np.linalg.norm(dW):.4f}, |dW|/|W| {np.linalg.norm(dW) / size:.6f}, "
          f"cosine of W and dW {abs(cosine(W, dW)):.0e}")
print(f"y differs by {abs((outputs[0] - outputs[1]).detach().numpy()).max():.0e}")
