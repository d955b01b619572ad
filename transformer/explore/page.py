"""The page: one HTML file with its style, its scripts and its data inside, that opens from a disk without a network.

The parts are the files in transformer/explore/page/; docs/design.md describes its folders. The scripts share one scope
and have no build step, so that the inspector of a browser shows the same text as those files.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from transformer.explore.steps import steps_for_page

# By folder, in the order in which they run: a script that starts may use those above it.
FOLDERS = {
    # mathematics, without a document
    "maths": ("arrays", "activations", "autodiff", "attention", "layers", "model", "taps", "result", "batch",
              "tokenizers", "decoding", "optimizers", "remote", "session"),
    "places": ("kinds", "rules", "rules_of_rows", "labels", "attention_tensors", "attention_strip", "attention_words",
               "attention_identities", "attention", "embedding", "norm", "feed_forward", "residual", "output", "cells",
               "narrow"),
    "faults": ("breakages", "checks", "identities"),
    # the application
    "draw": ("colour", "image", "focus", "grid"),
    "shell": ("places", "chosen", "texts", "state", "view", "address", "sentence"),
    "stage": ("steps", "strip", "equations", "words", "motion", "sum", "tools", "fit", "stage", "verdict"),
    "controls": ("controls",),
    # the views beside the stage, in the order of their tabs
    "panels": ("parts", "step", "softmax", "checks", "steps", "steps_words", "steps_curve", "steps_panel",
               "heads", "flow", "program"),
    # the model as one picture
    "map": ("layout", "picture", "sweep", "zoom", "map"),
    # the caption that tells a story
    "story": ("subject", "words", "text", "pointing", "telling", "bar"),
    "start": ("keyboard", "main"),
}
SCRIPTS = tuple(f"{folder}/{name}" for folder, names in FOLDERS.items() for name in names)
STYLES = ("shell/style", "map/map", "stage/stage", "panels/panels", "story/story")
HEIGHT = 860  # pixels, in a notebook: the page fits itself into them
MARK = b'<meta name="generator" content="transformer explain">'  # in page.html


def page_html(data: dict[str, Any]) -> str:
    """The page that shows `data`, which transformer/explore/data.py describes."""
    style, scripts = "\n".join(part(f"{name}.css") for name in STYLES), joined_scripts()
    parts = {"policy": _policy(style, scripts), "title": escape(data["title"]), "style": style,
             "data": embedded_json(data), "scripts": scripts}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], part("shell/page.html"))


def frame(page: str) -> str:
    """For a notebook: an iframe that holds the page in an attribute, so that neither style nor scripts leak out.

    The frame is sandboxed: what runs inside cannot reach the notebook. It may save its pictures.
    """
    return (f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" '
            f'title="Backpropagation through attention" style="width:100%;height:{HEIGHT}px;border:0"></iframe>')


def is_page(path: Path) -> bool:
    """Whether there is a file at `path`, and it is a page that `page_html` made."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return MARK in file.read(2000)


def embedded_json(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: without ``<``, no text can end the element or open a comment."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(style: str, scripts: str) -> str:
    """The Content-Security-Policy: no request, and no style or script but these, whatever the data hold.

    A large model computes in a worker, which the page makes of its own scripts.

    The data are no script to a browser, so that the policy does not depend on them. The page's icon is a ``data:`` URL.
    """
    return (f"default-src 'none'; script-src {_hash(scripts)}; style-src {_hash(style)}; img-src data:; "
            "worker-src blob:; base-uri 'none'; form-action 'none'")


def _hash(text: str) -> str:
    """How a policy names an element that holds `text` between two line feeds."""
    digest = sha256(f"\n{text}\n".encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


@cache
def part(name: str) -> str:
    """The text of a file in page/."""
    return files("transformer.explore").joinpath("page", name).read_text(encoding="utf-8")


def joined_scripts(names: Sequence[str] = SCRIPTS) -> str:
    """The scripts, each below its name, and the table of an attention's steps before those that use it.

    The directive "use strict" at the beginning of the first script applies to all.
    """
    first, *others = (f"// {name}.js\n{part(f'{name}.js')}" for name in names)
    return "\n".join([first, f"const ATTENTION_STEPS = {embedded_json(steps_for_page())};", *others])
