"""The page: one HTML file with its style, its scripts and its data inside, that opens from a disk without a network.

The parts are the files in transformer/explore/page/. The scripts share one scope and have no build step, so that the
inspector of a browser shows the same text as those files.
"""

from __future__ import annotations

import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

# In the order in which they run: a script that starts may use those above it.
SCRIPTS = (
    # mathematics, without a document
    "arrays", "attention", "compute", "rules", "tensors", "cells", "breakages", "checks", "identities",
    # the application
    "state", "colour", "image", "grid_table", "grid_image", "grid", "steps", "strip", "equations", "words", "stage_sum",
    "stage_tools", "stage_room", "stage", "verdict", "switched", "controls", "key",
    # the views below the stage, in the order of their tabs
    "panel_parts", "softmax_panel", "checks_panel", "paths", "flow_picture", "flow", "heads", "history",
    "keyboard", "main",
)
STYLES = ("style", "panels")


def page_html(data: dict[str, Any]) -> str:
    """The page that shows `data`, which transformer/explore/data.py describes."""
    style, scripts = "\n".join(_part(f"{name}.css") for name in STYLES), "\n".join(_script(name) for name in SCRIPTS)
    parts = {"policy": _policy(style, scripts), "title": escape(data["title"]), "style": style,
             "data": embedded_json(data), "scripts": scripts}
    before, *pieces = _part("page.html").split("{{")
    found = [before]
    for piece in pieces:  # one pass, so that braces inside a part are no placeholder
        name, _, after = piece.partition("}}")
        found += [parts[name], after]
    return "".join(found)


def embedded_json(data: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: without ``<``, no text can end the element or open a comment."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _policy(style: str, scripts: str) -> str:
    """The Content-Security-Policy: no request, and no style or script but these, whatever the data hold.

    The data are no script to a browser, so that the policy does not depend on them. The page's icon is a ``data:`` URL.
    """
    return (f"default-src 'none'; script-src {_hash(scripts)}; style-src {_hash(style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'")


def _hash(text: str) -> str:
    """How a policy names an element that holds `text` between two line feeds."""
    digest = sha256(f"\n{text}\n".encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


@cache
def _part(name: str) -> str:
    return (files("transformer.explore") / "page" / name).read_text(encoding="utf-8")


def _script(name: str) -> str:
    """A script below its name; the directive "use strict" at the beginning of the first script applies to all."""
    return f"// {name}.js\n{_part(f'{name}.js')}"
