"""Makes optimizers.safetensors: what PyTorch's optimizers do in float64, step by step.

Run with PyTorch and safetensors installed: python tests/reference/make_optimizers.py (last: PyTorch 2.13.0, CPU).
Two parameters, six steps. The gradients are drawn beforehand, so nothing but the optimizer is compared; the second
parameter has no gradient at step 2, and the learning rate is halved before step 4 (counted from 0).
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

STEPS, SKIPPED, HALVED = 6, 2, 4
SHAPES = [(3, 4), (5,)]
CASES = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_weight_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.3}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "adam": ("Adam", {"lr": 0.01}),
    "adam_weight_decay": ("Adam", {"lr": 0.01, "weight_decay": 0.3}),
    "adam_paper": ("Adam", {"lr": 0.02, "betas": [0.9, 0.98], "eps": 1e-9}),
    "adam_large_eps": ("Adam", {"lr": 0.02, "betas": [0.5, 0.6], "eps": 0.1}),
    "adamw": ("AdamW", {"lr": 0.01}),
    "adamw_weight_decay": ("AdamW", {"lr": 0.05, "weight_decay": 0.5, "betas": [0.8, 0.9]}),
}

draw = np.random.default_rng(20)
arrays = {f"start.{i}": draw.normal(size=shape) for i, shape in enumerate(SHAPES)}
arrays |= {f"gradient.{i}.{t}": draw.normal(size=s) for t in range(STEPS) for i, s in enumerate(SHAPES)}
for name, (kind, options) in CASES.items():
    params = [torch.nn.Parameter(torch.tensor(arrays[f"start.{i}"])) for i in range(len(SHAPES))]
    optimizer = getattr(torch.optim, kind)(params, **options)
    for t in range(STEPS):
        if t == HALVED:
            optimizer.param_groups[0]["lr"] /= 2
        for i, p in enumerate(params):
            p.grad = None if (i, t) == (1, SKIPPED) else torch.tensor(arrays[f"gradient.{i}.{t}"])
        optimizer.step()
        arrays |= {f"{name}.{i}.{t}": p.detach().numpy().copy() for i, p in enumerate(params)}

facts = {"cases": CASES, "steps": STEPS, "skipped": [1, SKIPPED], "halved": HALVED, "torch": torch.__version__}
save_file(arrays, Path(__file__).with_name("optimizers.safetensors"), {key: json.dumps(v) for key, v in facts.items()})
