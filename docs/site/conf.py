"""Sphinx's settings. `build` runs Sphinx with them."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from docs.site.extension import linkcode_resolve  # noqa: E402, F401  (after the path is set; Sphinx calls it)

project = html_title = "minigrad"
extensions = ["myst_nb", "sphinx_copybutton", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon",
              "sphinx.ext.linkcode", "docs.site.extension"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}  # autosummary writes the first

# Markdown
myst_heading_anchors = 6  # the anchors that a code host gives to headings
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": {"url": "{{path}}"}}
myst_dmath_double_inline = True
nb_execution_mode = "off"  # the lessons come executed
nb_merge_streams = True
nb_code_prompt_show = "Show the code of the picture"
nb_code_prompt_hide = "Hide the code of the picture"
html_math_renderer = "mathml"

# The reference
default_role = "code"
autodoc_default_options = {
    "members": True, "exclude-members": "Tensor",  # it has a page of its own
    "inherited-members": "Module, Optimizer, BaseException, dict, list, tuple, str, partial"}  # but none of theirs
napoleon_use_ivar = True

# Appearance
html_theme = "furo"
templates_path = [str(HERE / "theme/templates")]
html_static_path = ["theme/static"]
html_css_files = ["site.css"]
html_favicon = "theme/static/favicon.svg"
html_copy_source = html_show_copyright = False
html_theme_options = {
    f"{scheme}_css_variables": {"color-brand-primary": accent, "color-brand-content": accent}
    for scheme, accent in (("light", "#33418f"), ("dark", "#a9b6ff"))}  # the explorer's
