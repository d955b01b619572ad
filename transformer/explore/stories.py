"""The stories that a page tells: those that come with it (transformer/explore/page/story/*.json), and a teacher's own.

A story is JSON; docs/stories.md says how to write one. What depends on the run, such as whether a place has a tensor of
that name, the page finds out; `read_story` checks all the rest, so that a mistake is reported where the page is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from transformer.explore.data import Json

BUILT_IN = ("gradient", "softmax", "scale")
# What a story is about: how the page finds the row that all its stops speak of.
ABOUT = ("wrong token", "largest gradient", "fading row")
# Words for an index that depends on the run; page/story/subject.js finds them.
POSITIONS = ("row", "key", "other")
INDICES = (*POSITIONS, "asked", "written", "largest")
PLACES = ("attention", "addition", "output")
BROKEN = ("batch", "rowsum", "transpose", "mask")
# What {…} in a text may name; page/story/words.js says what each of them is.
WORDS = ("read", "so_far", "written", "asked", "p_written", "p_asked", "loss", "loss_here", "tokens", "parameters",
         "rate", "what_next", "query", "key", "other", "word", "place", "head", "keys", "d_k", "root", "above",
         "raises", "rise", "cost", "moves", "more", "weight", "shifted", "where", "later", "earlier")
SUMMARIES = ("sum", "size", "largest")
PLACEHOLDER = re.compile(r"(?:before |falls )?(?:(?P<summary>[a-z]+) )?(?P<name>[A-Za-z_]+)"
                         r"(?:\[(?P<row>\w+)(?:, ?(?P<col>\w+))?\])?")
ACTIONS = ("sweep", "step")
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


def _checked(story: Any, where: str) -> Json:
    _fields(where, story, {"id": _text, "title": _text, "about": _one_of(*ABOUT),
                           "stops": _stops}, optional=())
    return dict(story)


Rule = Callable[[str, Any], None]


def _fields(where: str, found: Any, rules: dict[str, Rule], optional: Iterable[str]) -> None:
    """Check an object: its fields are those of `rules`, and each follows its rule."""
    if not isinstance(found, dict):
        raise StoryError(f"{where}: an object {{…}} expected, got {_shown(found)}")
    for name in found:
        if name not in rules:
            raise StoryError(f"{where}: {name}: there is no such field; there are {', '.join(rules)}")
    for name, rule in rules.items():
        if name in found:
            rule(f"{where}: {name}", found[name])
        elif name not in optional:
            raise StoryError(f"{where}: {name}: is missing")


def _stops(where: str, stops: Any) -> None:
    if not isinstance(stops, list) or not stops:
        raise StoryError(f"{where}: a list of stops expected, got {_shown(stops)}")
    where = where.removesuffix(": stops")
    rules = {"text": _with_placeholders, "agreed": _with_placeholders, "state": _state, "point": _points,
             "do": _one_of(*ACTIONS)}
    for number, stop in enumerate(stops, start=1):
        _fields(f"{where}: stop {number}", stop, rules, optional=("agreed", "state", "point", "do"))


def _state(where: str, state: Any) -> None:
    rules: dict[str, Rule] = {"place": _place, "symbol": _text, "cell": _cell, "panel": _text, "scaling": _switch,
                              "masking": _switch, "broken": _one_of(*BROKEN)}
    _fields(where, state, rules, optional=rules)


def _text(where: str, value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise StoryError(f"{where}: a text expected, got {_shown(value)}")


def _switch(where: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise StoryError(f"{where}: true or false expected, got {_shown(value)}")


def _one_of(*known: str) -> Rule:
    def check(where: str, value: Any) -> None:
        if value not in known:
            raise StoryError(f"{where}: {_shown(value)} is none of {', '.join(known)}")
    return check


def _place(where: str, value: Any) -> None:
    _text(where, value)
    if value not in PLACES and "." not in value:
        raise StoryError(f"{where}: {_shown(value)} is none of {', '.join(PLACES)}, and no dotted path of a place")


def _cell(where: str, cell: Any) -> None:
    if not isinstance(cell, list) or len(cell) != 2 or not all(map(_is_index, cell)):
        raise StoryError(f"{where}: a row and a column expected, each a number from 0 or one of {', '.join(INDICES)}, "
                         f"got {_shown(cell)}")


def _is_index(value: Any) -> bool:
    return value in INDICES or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)


def _points(where: str, points: Any) -> None:
    if not isinstance(points, list):
        raise StoryError(f"{where}: a list such as [\"tile:dS\", \"panel\"] expected, got {_shown(points)}")
    for point in points:
        _text(where, point)
        kind, _, name = point.partition(":")
        if kind.endswith("token") and name not in POSITIONS and not name.isdecimal():
            raise StoryError(f"{where}: {_shown(point)}: {name} is no number and none of {', '.join(POSITIONS)}")


def _with_placeholders(where: str, text: Any) -> None:
    _text(where, text)
    for inner in re.findall(r"\{([^{}]*)\}", text):
        _placeholder(where, inner)
    if re.search(r"[{}]", re.sub(r"\{[^{}]*\}", "", text)):
        raise StoryError(f"{where}: a brace without its partner in {_shown(text)}")


def _placeholder(where: str, inner: str) -> None:
    found = PLACEHOLDER.fullmatch(inner)
    if found is None:
        raise StoryError(f"{where}: {{{inner}}} is no placeholder, such as {{asked}} or {{dS[row, key]}}")
    if found["summary"] and found["summary"] not in SUMMARIES:
        raise StoryError(f"{where}: {{{inner}}}: {found['summary']} is none of {', '.join(SUMMARIES)}")
    if found["row"] is None and found["name"] not in WORDS:
        raise StoryError(f"{where}: {{{inner}}}: {found['name']} is none of {', '.join(WORDS)}; "
                         f"of a tensor, name a cell: {{{found['name']}[row, key]}}")
    for index in (found["row"], found["col"]):
        if index is not None and index not in INDICES and not index.isdecimal():
            raise StoryError(f"{where}: {{{inner}}}: {index} is no number and none of {', '.join(INDICES)}")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
