"""How the site is made: ``python -m docs.site`` turns the repository's Markdown, lessons and sources into docs/_site.

Read in this order: `build` (the phases), `links` (what becomes which page; no link leads to nothing), `lessons` (the
scripts become executed notebooks), `names` and `reference` (the public names, a page for each namespace), `sources`
(the pages that show source files), `conf` (Sphinx's settings), `extension` (what Sphinx cannot do by itself), `search`
(words in Japanese), and the folder browser (the lessons' code runs in the reader's browser).
"""
