"""The stories that a page tells: those that come with it (transformer/explore/page/story/*.json), and a teacher's own.

A story is JSON; docs/stories.md says how to write one. What depends on the run, such as whether a place has a tensor of
that name, the page finds out; `read_story` checks all the rest, so that a mistake is reported where the page is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from transformer.explore.data import Json
from transformer.explore.page import part

BUILT_IN = ("gradient", "softmax", "scale")
# Words for an index that depends on the run; page/story/subject.js finds them.
POSITION = r"(?:row|key|other|\d+)"
INDEX = r"(?:row|key|other|asked|written|largest|\d+)"
# What {…} in a text may name; page/story/words.js says what each of them is.
WORDS = ("read", "so_far", "written", "asked", "p_written", "p_asked", "loss", "loss_here", "tokens", "parameters",
         "rate", "what_next", "query", "key", "other", "word", "place", "head", "keys", "d_k", "root", "above",
         "raises", "rise", "cost", "more", "weight", "where", "later", "earlier")
ENTRY = rf"(?:(?:sum|size|largest) )?[A-Za-z_]+\[{INDEX}(?:, ?{INDEX})?\]"
PLACEHOLDER = rf"\{{(?:before |falls )?(?:{'|'.join(WORDS)}|{ENTRY})\}}"

# Of each field: a pattern that its JSON has as a whole, and what it is called in an error.
Rules = dict[str, tuple[str, str]]
TEXT = r'".*\S.*"', "a text"
SWITCH = "true|false", "true or false"
CELL_INDEX = rf'(?:"(?!\d){INDEX}"|\d+)'
KEY = rf'"(?:[^"]*token:{POSITION}|(?:(?!token:)[^"])+)"'  # of the page; that of a token ends in its position


def _one_of(*known: str) -> tuple[str, str]:
    return f'"(?:{"|".join(known)})"', f"one of {', '.join(known)}"


STORY: Rules = {
    "id": TEXT, "title": TEXT,
    # How the page finds the row that all stops speak of.
    "about": _one_of("wrong token", "largest gradient", "fading row"),
    "stops": (r"\[.+\]", "a list of stops"),
}
STOP: Rules = {
    "text": TEXT, "agreed": TEXT, "state": (r"\{.*\}", "an object {…}"), "do": _one_of("sweep", "step"),
    "point": (rf"\[(?:{KEY}(?:, {KEY})*)?\]", 'a list such as ["tile:dS", "token:row", "panel"]'),
}
STATE: Rules = {
    "place": (r'"(?:attention|addition|output|.*\..*)"', "attention, addition, output, or the dotted path of a place"),
    "symbol": TEXT, "panel": TEXT, "scaling": SWITCH, "masking": SWITCH,
    "cell": (rf"\[{CELL_INDEX}, {CELL_INDEX}\]",
             "a row and a column, each a number from 0, or row, key, other, asked, written or largest"),
    "broken": _one_of("batch", "rowsum", "transpose", "mask"),
}
Story = str | PathLike[str] | Json


class StoryError(ValueError):
    """A story that cannot be told; the message names the stop and the field."""


def stories_of_page(own: Iterable[Story] = ()) -> list[Json]:
    """The stories of a page: those of its maker first, with which it opens, then those that come with it.

    Args:
        own: files, or the same as dicts.

    Raises:
        StoryError: one cannot be told; the message is one line.
        OSError: a file cannot be read.
    """
    read = [read_story(story) for story in own]
    stories = read + [json.loads(part(f"story/{name}.json")) for name in BUILT_IN]
    names = [story["id"] for story in stories]
    for story in read:
        if names.count(story["id"]) > 1:
            raise StoryError(f"story {story['id']!r}: id: another story of the page has it")
    return stories


def read_story(story: Story) -> Json:
    """A story from its file or dict, checked. Errors as of `stories_of_page`."""
    if isinstance(story, dict):
        return _checked(story, "story")
    try:
        read = json.loads(Path(story).read_text(encoding="utf-8"))
    except ValueError as error:
        raise StoryError(f"{story}: no JSON in UTF-8: {error}") from error
    return _checked(read, str(story))


def _checked(story: Any, where: str) -> Json:
    _fields(where, story, STORY)
    for number, stop in enumerate(story["stops"], start=1):
        at = f"{where}: stop {number}"
        _fields(at, stop, STOP, optional=STOP.keys() - {"text"})
        _fields(f"{at}: state", stop.get("state", {}), STATE, optional=STATE)
        for name in ("text", "agreed"):
            left = re.search(r"\{[^{}]*\}?|\}", re.sub(PLACEHOLDER, "", stop.get(name, "")))
            if left:
                raise StoryError(f"{at}: {name}: {left[0]}: an entry such as {{dS[row, key]}} expected, or one of "
                                 f"{', '.join(WORDS)}")
    return dict(story)


def _fields(where: str, found: Any, rules: Rules, optional: Collection[str] = ()) -> None:
    """Check an object: its fields are those of `rules`, and each follows its rule."""
    if not isinstance(found, dict):
        raise StoryError(f"{where}: an object {{…}} expected, got {found!r:.60}")
    for name in found.keys() - rules.keys():
        raise StoryError(f"{where}: {name}: there is no such field; there are {', '.join(rules)}")
    for name, (pattern, expected) in rules.items():
        given = json.dumps(found.get(name), ensure_ascii=False)
        if name in found and not re.fullmatch(pattern, given):
            raise StoryError(f"{where}: {name}: {expected} expected, got {given:.60}")
        if name not in found and name not in optional:
            raise StoryError(f"{where}: {name}: is missing")
