"""What this site adds to Sphinx: MathML, links counted from its top, pages of sources, and what Japanese needs."""

import posixpath
import re
from collections.abc import Iterator
from gettext import NullTranslations
from typing import Any

import sphinx.locale
from docutils import nodes
from math_core import LatexToMathML
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from docs.site import search, sources

LATEX = LatexToMathML()


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("site", {}, "html")  # what build.assemble found out: see conf.py
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    app.add_transform(AnchorsOfACodeHost)
    app.add_search_language(search.Japanese)
    app.connect("doctree-resolved", make_links_relative)
    app.connect("doctree-resolved", remove_empty_heads)
    app.connect("html-collect-pages", pages_without_a_document)
    app.connect("html-page-context", add_what_the_templates_show)
    app.connect("builder-inited", add_translations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- Mathematics -------------------------------------------------------------------------------------------


def visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(LATEX.convert_with_local_state(node.astext(), displaystyle=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    mathml = LATEX.convert_with_local_state(node.astext(), displaystyle=True)
    writer.body.append(f'<div class="formula">{mathml}</div>\n')
    raise nodes.SkipNode


# --- Tables ------------------------------------------------------------------------------------------------


def remove_empty_heads(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Markdown has no table without a head: one whose cells are all empty is no head."""
    for head in list(doctree.findall(nodes.thead)):
        if not head.astext().strip():
            head.parent.remove(head)


# --- Links -------------------------------------------------------------------------------------------------


def relative(app: Sphinx, page: str, target: str) -> str:
    """A target counted from the top of the site, as a page of this language writes it."""
    return posixpath.relpath(target, posixpath.dirname(app.config.site["prefix"] + page) or ".")


def make_links_relative(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for link in doctree.findall(nodes.reference):
        scheme, _, target = link.get("refuri", "").partition("site:")
        if target and not scheme:
            link["refuri"] = relative(app, docname, target)
            link["classes"] = [name for name in link["classes"] if name != "external"]


class AnchorsOfACodeHost(SphinxTransform):
    """A page leads to its headings by the anchors that a code host gives them: ``#演習``, not ``#id3``."""

    default_priority = 701  # at 700 MyST adds these anchors to those of docutils, at 879 it resolves links to them

    def apply(self) -> None:
        slugs = getattr(self.document, "myst_slugs", {})
        for section in self.document.findall(nodes.section):
            slug = section.get("slug")
            if slug in section["ids"]:
                section["ids"].sort(key=lambda anchor: anchor != slug)
                line, _, title = slugs[slug]
                slugs[slug] = line, slug, title


def add_what_the_templates_show(app: Sphinx, pagename: str, template: str, context: dict[str, Any],
                                doctree: object) -> None:
    """Where the page is in the other language, and where the notebook of a lesson is, if they are."""
    here = app.config.site["prefix"] + pagename
    context["in_japanese"] = in_japanese
    if counterpart := app.config.site["counterparts"].get(here):
        context["other"] = "en" if app.config.language == "ja" else "ja"
        context["this_page"] = posixpath.basename(f"{here}.html")
        context["other_language"] = relative(app, pagename, f"{counterpart}.html")
    if here in app.config.site["lessons"]:
        context["notebook"] = posixpath.basename(f"{here}.ipynb")
    if app.config.site["runnable"] and (pagename == "lessons/index" or here in app.config.site["lessons"]):
        # Where Python is, counted from the script that loads it: see docs/site/browser.
        context["pyodide"] = "../pyodide/" if app.config.language == "en" else "../../../_static/pyodide/"


# --- Words of furo that nobody has translated --------------------------------------------------------------

WORDS = {"On this page": "このページの内容", "Back to top": "ページの先頭へ", "Skip to content": "本文へ移動",
         "Next": "次へ", "Previous": "前へ", "Home": "トップ",
         "Link to this heading": "この見出しへのリンク", "Link to this image": "この画像へのリンク",
         "Link to this table": "この表へのリンク"}
WRITTEN = {  # which furo writes into its pages as they are
    'aria-label="Toggle site navigation sidebar"': 'aria-label="ナビゲーションの開閉"',
    'aria-label="Toggle table of contents sidebar"': 'aria-label="目次の開閉"',
    'aria-label="Toggle Light / Dark / Auto color theme"': 'aria-label="配色の切り替え(ライト、ダーク、自動)"',
    'aria-label="Toggle navigation of ([^"]*)"': r'aria-label="「\1」の項目の開閉"',
    r"Made with (<a.*?</a>) and (<a.*?</a>)'s\s+(<a.*?</a>)": r"\1と\2の\3で作成",
}


class Translations(NullTranslations):
    def gettext(self, message: str) -> str:
        return WORDS.get(message.strip(), message)


def add_translations(app: Sphinx) -> None:
    if app.config.language == "ja":
        sphinx.locale.get_translator().add_fallback(Translations())


def in_japanese(html: str) -> str:
    for english, japanese in WRITTEN.items():
        html = re.sub(english, japanese, html)
    return html


# --- Pages -------------------------------------------------------------------------------------------------


def pages_without_a_document(app: Sphinx) -> Iterator[tuple[str, dict[str, str], str]]:
    """The sources and the page for a wrong address: not in the search, not in the navigation, quick to make."""
    site = app.config.site
    for address, title, body in sources.pages(site["root"], site["sources"]):
        yield address, {"title": title, "body": body}, "page.html"
    if not site["prefix"]:
        yield "404", {"title": "Not here"}, "404.html"
