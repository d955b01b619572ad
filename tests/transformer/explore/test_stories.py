"""Stories: a mistake is reported in one line that names the stop and the field; the page's own are told without any."""

import copy
import json
import re
from pathlib import Path

import pytest

from transformer.explore.page import part
from transformer.explore.stories import BUILT_IN, StoryError, read_story, stories_of_page

STORY = {"id": "mine", "title": "Mine", "about": "largest gradient",
         "stops": [{"text": "{A[row, key]} of {key}", "state": {"symbol": "A", "cell": ["row", 3]},
                    "point": ["grid:A"]},
                   {"text": "{falls size dS[row]}"}]}


def changed(**changes):
    """The story with fields of its second stop changed, or of itself where it has them."""
    story = copy.deepcopy(STORY)
    for name, value in changes.items():
        (story if name in story else story["stops"][1])[name] = value
    return story


def test_the_pages_own_stories_and_that_of_the_manual_can_be_told():
    manual = (Path(__file__).parents[3] / "docs/stories.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```json\n(.*?)^```", manual, flags=re.M | re.S)
    for text in (example, *(part(f"story/{name}.json") for name in BUILT_IN)):
        assert read_story(json.loads(text))["stops"]


@pytest.mark.parametrize(("changes", "place"), [
    ({"about": "all"}, "story: about: "),
    ({"text": "{nothing}"}, "story: stop 2: text: {nothing}: "),
    ({"texts": "a"}, "story: stop 2: texts: "),
    ({"state": {"simbol": "A"}}, "story: stop 2: state: simbol: "),
    ({"point": "grid:A"}, "story: stop 2: point: "),
    ({"do": "jump"}, "story: stop 2: do: "),
])
def test_a_mistake_is_one_line_with_stop_and_field(changes, place):
    with pytest.raises(StoryError) as error:
        read_story(changed(**changes))
    assert str(error.value).startswith(place)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_story_is_named(tmp_path):
    path = tmp_path / "story.json"
    for content in (b"[1]", b"{", b"\xff", b'{"id": "x"}'):
        path.write_bytes(content)
        with pytest.raises(StoryError, match=r"story\.json: "):
            read_story(path)


def test_two_stories_of_a_page_have_two_ids():
    assert [story["id"] for story in stories_of_page([STORY])] == ["mine", *BUILT_IN]
    for own in ([STORY, STORY], [changed(id=BUILT_IN[0])]):
        with pytest.raises(StoryError, match="id"):
            stories_of_page(own)
