"""The page inside a notebook."""

from __future__ import annotations

from html import escape

HEIGHT = 860  # pixels: the page fits itself into them


def frame(page: str) -> str:
    """An iframe that holds the HTML of a page in an attribute, so that neither its style nor its scripts leak out.

    The frame is sandboxed: what runs inside cannot reach the notebook. It may save its pictures.
    """
    return (f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts allow-downloads" '
            f'title="Backpropagation through attention" style="width:100%;height:{HEIGHT}px;border:0"></iframe>')
