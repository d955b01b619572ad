"""Sphinx's settings, for both languages. `build` runs Sphinx with them, and with the tag ``ja`` for Japanese."""

import json
import os
import sys
from pathlib import Path, PurePosixPath

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from docs.site.build import ASSEMBLED, BUILD, site_url  # noqa: E402  (after the path is set)

japanese = tags.has("ja")  # type: ignore[name-defined]  # noqa: F821  (Sphinx defines it)
assembled = json.loads(ASSEMBLED.read_text(encoding="utf-8"))

project = "minigrad"
html_title = "minigrad"
language = "ja" if japanese else "en"
extensions = ["myst_nb", "sphinx_copybutton", "docs.site.extension"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
html_show_copyright = False
html_copy_source = False
html_domain_indices = False
html_use_index = False

site = {
    "root": ROOT,
    "prefix": "ja/" if japanese else "",
    "counterparts": assembled["counterparts"],
    "lessons": assembled["lessons"],
    "runnable": bool(os.environ.get("PYODIDE")),
    "sources": [] if japanese else [PurePosixPath(path) for path in assembled["sources"]],
}

# Markdown
myst_heading_anchors = 6  # the anchors that a code host gives to headings
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline"]
myst_url_schemes = ["http", "https", "mailto", "site"]
myst_dmath_double_inline = True
nb_execution_mode = "off"  # the lessons come executed
nb_merge_streams = True
nb_code_prompt_show = "図を描くコードを表示" if japanese else "Show the code of the picture"
nb_code_prompt_hide = "図を描くコードを隠す" if japanese else "Hide the code of the picture"
html_math_renderer = "mathml"
suppress_warnings = ["config.cache"]  # the setting ``site`` is made anew each time
copybutton_exclude = ".linenos, .gp, .go"

# Appearance
html_theme = "furo"
templates_path = ["theme/templates"]
html_static_path = ["theme/static", str(ROOT / "docs/images/explorer_opening.png")]  # the latter: if motion is unwanted
html_css_files = ["site.css"]
html_js_files = [("scrolling.js", {"defer": "defer"})]
html_favicon = "theme/static/favicon.svg"
html_extra_path = [] if japanese else [str(BUILD / "extra")]
html_baseurl = site_url() + ("ja/" if japanese else "")
html_sidebars = {"**": ["sidebar/brand.html", "language.html", "sidebar/search.html", "sidebar/scroll-start.html",
                        "sidebar/navigation.html", "sidebar/scroll-end.html"]}
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"


def variables(ground: str, surface: str, quiet: str, ink: str, soft: str, line: str, accent: str) -> dict[str, str]:
    """furo's names for the colours of the explorer's page."""
    return {
        "color-background-primary": surface, "color-background-secondary": ground, "color-background-border": line,
        "color-background-hover": quiet, "color-background-hover--transparent": f"{quiet}00",
        "color-foreground-primary": ink, "color-foreground-secondary": soft, "color-foreground-muted": soft,
        "color-brand-primary": accent, "color-brand-content": accent, "color-brand-visited": accent,
        "color-code-background": quiet, "color-inline-code-background": quiet, "color-api-name": accent,
        "color-api-pre-name": accent, "color-sidebar-link-text--top-level": ink,
    }


html_theme_options = {
    "light_css_variables": variables("#f4f4f1", "#ffffff", "#f4f4f3", "#1b202a", "#5b6473", "#dfe1e5", "#33418f"),
    "dark_css_variables": variables("#14171c", "#1b1f26", "#232831", "#e8eaee", "#9ea7b5", "#333a45", "#a9b6ff"),
}
