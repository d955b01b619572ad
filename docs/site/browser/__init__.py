"""The lessons' code runs in the reader's browser: what the site takes along for it, and the scripts of its pages.

Read in this order: `release` (one release of Pyodide, the files of it that the lessons need, their digests), `fetch`
(downloads them into a folder), `install` (copies them into the built site, with wheels of our own packages), and the
folder page: ``cells.js`` gives each cell of a page its buttons, ``worker.js`` runs Python beside the page, and
``run_cells.py`` runs a cell there.

A site is built with it where the environment variable PYODIDE names the folder, and has no buttons otherwise::

    python -m docs.site.browser.fetch build/pyodide
    make site PYODIDE=build/pyodide

A host needs nothing special: ``.wasm`` should be served as application/wasm (otherwise it starts a little later, with
a warning in the console), and no header isolates the page, as a cell is stopped by ending its worker. A policy of the
host's own must allow scripts and workers of the site and ``'wasm-unsafe-eval'``. A page opened from disk has no
buttons: browsers run no such worker there.
"""
