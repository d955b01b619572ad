"""The stories that a page tells: those that come with it (transformer/explore/page/story/*.json), and a teacher's own.

A story is JSON; docs/stories.md says how to write one. What depends on the run, such as whether a place has a tensor of
that name, the page finds out; `read_story` checks all the rest, so that a mistake is reported where the page is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from transformer.explore.data import Json

BUILT_IN = ("gradient", "softmax", "scale")
# Words for an index that depends on the run; page/story/subject.js finds them.
POSITIONS = ("row", "key", "other")
INDICES = (*POSITIONS, "asked", "written", "largest")
PLACES = ("attention", "addition", "output")
# What {…} in a text may name; page/story/words.js says what each of them is.
WORDS = ("read", "so_far", "written", "asked", "p_written", "p_asked", "loss", "loss_here", "tokens", "parameters",
         "rate", "what_next", "query", "key", "other", "word", "place", "head", "keys", "d_k", "root", "above",
         "raises", "rise", "cost", "more", "weight", "shifted", "where", "later", "earlier")
INDEX = "|".join([*INDICES, r"\d+"])
ENTRY = rf"(?:(?:sum|size|largest) )?[A-Za-z_]+\[(?:{INDEX})(?:, ?(?:{INDEX}))?\]"
PLACEHOLDER = re.compile(rf"(?:before |falls )?(?:{'|'.join(WORDS)}|{ENTRY})")
Story = str | PathLike[str] | Json


class StoryError(ValueError):
    """A story that cannot be told; the message names the stop and the field."""


@cache
def _built_in(name: str) -> str:
    return files("transformer.explore").joinpath("page", "story", f"{name}.json").read_text(encoding="utf-8")


def stories_of_page(own: Iterable[Story] = ()) -> list[Json]:
    """The stories of a page: those of its maker first, with which it opens, then those that come with it.

    Args:
        own: files, or the same as dicts.

    Raises:
        StoryError: one cannot be told; the message is one line.
        OSError: a file cannot be read.
    """
    read = [read_story(story) for story in own]
    stories = read + [json.loads(_built_in(name)) for name in BUILT_IN]
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
    except UnicodeDecodeError as error:
        raise StoryError(f"{story}: not UTF-8") from error
    except json.JSONDecodeError as error:
        raise StoryError(f"{story}: no JSON: {error.msg} in line {error.lineno}") from error
    return _checked(read, str(story))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_cell(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(
        index in INDICES or (type(index) is int and index >= 0) for index in value)


def _is_point(value: Any) -> bool:
    """A key of the page; that of a token ends in its position."""
    return _is_text(value) and re.fullmatch(rf".*token:(?!(?:{'|'.join(POSITIONS)}|\d+)$).*", value) is None


# Of each field, what is allowed, and its name in an error.
Rules = dict[str, tuple[Callable[[Any], bool], str]]
TEXT = (_is_text, "a text")
SWITCH = (lambda value: isinstance(value, bool), "true or false")


def _one_of(*known: str) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value in known), f"one of {', '.join(known)}"


STORY: Rules = {
    "id": TEXT, "title": TEXT,
    # How the page finds the row that all stops speak of.
    "about": _one_of("wrong token", "largest gradient", "fading row"),
    "stops": (lambda value: isinstance(value, list) and value != [], "a list of stops"),
}
STOP: Rules = {
    "text": TEXT, "agreed": TEXT, "state": (lambda value: isinstance(value, dict), "an object {…}"),
    "point": (lambda value: isinstance(value, list) and all(map(_is_point, value)),
              "a list such as [\"tile:dS\", \"token:row\", \"panel\"]"),
    "do": _one_of("sweep", "step"),
}
STATE: Rules = {
    "place": (lambda value: _is_text(value) and (value in PLACES or "." in value),
              f"one of {', '.join(PLACES)}, or the dotted path of a place"),
    "symbol": TEXT, "panel": TEXT, "scaling": SWITCH, "masking": SWITCH,
    "cell": (_is_cell, f"a row and a column, each a number from 0 or one of {', '.join(INDICES)}"),
    "broken": _one_of("batch", "rowsum", "transpose", "mask"),
}


def _checked(story: Any, where: str) -> Json:
    _fields(where, story, STORY)
    for number, stop in enumerate(story["stops"], start=1):
        at = f"{where}: stop {number}"
        _fields(at, stop, STOP, optional=STOP.keys() - {"text"})
        _fields(f"{at}: state", stop.get("state", {}), STATE, optional=STATE)
        for name in ("text", "agreed"):
            _placeholders(f"{at}: {name}", stop.get(name, ""))
    return dict(story)


def _fields(where: str, found: Any, rules: Rules, optional: Container[str] = ()) -> None:
    """Check an object: its fields are those of `rules`, and each follows its rule."""
    if not isinstance(found, dict):
        raise StoryError(f"{where}: an object {{…}} expected, got {_shown(found)}")
    for name in found.keys() - rules.keys():
        raise StoryError(f"{where}: {name}: there is no such field; there are {', '.join(rules)}")
    for name, (allowed, expected) in rules.items():
        if name in found and not allowed(found[name]):
            raise StoryError(f"{where}: {name}: {expected} expected, got {_shown(found[name])}")
        if name not in found and name not in optional:
            raise StoryError(f"{where}: {name}: is missing")


def _placeholders(where: str, text: str) -> None:
    for inner in re.findall(r"\{([^{}]*)\}", text):
        if PLACEHOLDER.fullmatch(inner) is None:
            raise StoryError(f"{where}: {{{inner}}}: an entry such as {{dS[row, key]}} expected, or one of "
                             f"{', '.join(WORDS)}")
    if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", text)):
        raise StoryError(f"{where}: a brace without its partner in {_shown(text)}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
