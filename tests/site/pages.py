"""Pages with runnable cells, and a server for them that lets nothing in from elsewhere."""

import html
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# What a host may demand of the site at most: no evaluation of texts as scripts, and nothing from elsewhere.
POLICY = ("default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
          "img-src 'self' blob: data:")
CELL = """<div class="cell docutils container">
<div class="cell_input docutils container"><div class="highlight-ipython3 notranslate"><div class="highlight"><pre>
<span></span><span class="n">{source}</span>
</pre></div></div></div>
<div class="cell_output docutils container"><div class="output stream"><pre>stored</pre></div></div>
</div>"""
PAGE = """<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8"><title>A lesson</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<link rel="stylesheet" href="_static/browser/cells.css">
<script defer src="_static/browser/cells.js" data-pyodide="../pyodide/"></script></head>
<body><main><h1>A lesson</h1>{cells}</main></body></html>"""


def write_page(site: Path, sources: Sequence[str], language: str = "en") -> None:
    """index.html of `site`, with a cell for each source, as MyST-NB writes it."""
    cells = "\n".join(CELL.format(source=html.escape(source)) for source in sources)
    (site / "index.html").write_text(PAGE.format(language=language, cells=cells), encoding="utf-8")


class Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *args: Any) -> None:
        self.server.paths.append(self.path)  # type: ignore[attr-defined]


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of `folder` as a site on this machine, and the paths that are asked for."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        server.paths = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", server.paths  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()
