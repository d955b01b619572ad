"""How the search cuts Japanese, which has no spaces between words: into its characters and pairs of neighbours.

A query finds the pages that have all of its pairs. So 逆伝播 finds 誤差逆伝播, too. Sphinx's own splitter cuts pages
into words and leaves the query whole: it finds no compound.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from sphinx.search import SearchLanguage

JAPANESE = "ぁ-ヿ㐀-鿿々"  # kana, kanji and their marks
RUN = re.compile(rf"[{JAPANESE}]+|[^\W{JAPANESE}]+")  # of Japanese, or of other letters and digits


class Japanese(SearchLanguage):
    lang = "ja"
    language_name = "Japanese"
    # The same for a query, but that single characters are left out where there are pairs.
    js_splitter_code = r"""
function splitQuery(query) {
  const runs = query.match(/[JAPANESE]+|(?:(?![JAPANESE])[\p{L}\p{N}_])+/gu) || [];
  return runs.flatMap((run) => /^[JAPANESE]{2}/.test(run) ? Array.from(run).slice(1).map((c, i) => run[i] + c) : [run]);
}
""".replace("JAPANESE", JAPANESE)

    def split(self, input: str) -> list[str]:
        return [part for run in RUN.findall(input) for part in parts(run)]


def parts(run: str) -> Iterator[str]:
    """What a run of letters is found by: 勾配法 by 勾, 配, 法, 勾配 and 配法, another word by itself."""
    if not re.match(f"[{JAPANESE}]", run):
        yield run
        return
    yield from run
    yield from map("".join, pairwise(run))
