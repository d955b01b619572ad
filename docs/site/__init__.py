"""How the site is made: ``python -m docs.site.build`` turns Markdown, lessons, docstrings and sources into docs/_site.

`build` collects the pages and runs Sphinx, `lessons` executes the scripts, `conf` has Sphinx's settings, `extension`
what Sphinx cannot do by itself, `sources` the pages that show source files, `names` the public names.
"""
