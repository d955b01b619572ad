"""Dates as people write them in English, French, German, Spanish and Japanese, after Babel and the CLDR.

A style is a pattern of the Unicode locale data markup language (UTS #35): ``EEEE`` the weekday in full,
``E`` in short, ``MMMM`` and ``MMM`` the month likewise, ``d`` and ``M`` numbers, ``dd`` and ``MM`` with two
digits, ``y`` the year, text in quotes. Our one addition is ``'{th}'``, the ending of an ordinal: 3rd, 1er.

Purely numeric dates are used only where all writers of the language agree on the order of day and month.
English is not such a language: 3/4/2021 is a day in March to some and in April to others.
"""

from collections.abc import Callable
from datetime import date
from random import Random

from transformer.data.extras import require

Belongs = Callable[[str], bool]
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)

LOCALES = ("en_US", "en_GB"), ("fr",), ("de",), ("es",), ("ja",)
"""Languages, drawn equally often, each with its locales."""

LENGTHS = ("full", "long", "medium")
"""The styles that Babel itself has for every locale."""

STYLES = {
    "en_US": ("E, MMM d, y", "MMMM d y", "EEEE MMMM d y", "MMM d y", "MMMM d'{th}', y", "MMM d'{th}', y",
              "EEEE, MMMM d'{th}', y"),
    "en_GB": ("E, d MMM y", "EEEE d MMMM y", "dd MMMM y", "d'{th}' MMMM y", "d'{th}' MMM y",
              "d'{th}' 'of' MMMM y", "EEEE, d'{th}' MMMM y"),
    "fr": ("E d MMM y", "dd/MM/y", "d/M/y", "EEEE dd/MM/y", "d'{th}' MMMM y", "EEEE d'{th}' MMMM y",
           "'le' d'{th}' MMMM y"),
    "de": ("E, d. MMM y", "d. MMM y", "d.M.y", "d MMMM y", "EEEE, 'den' d. MMMM y", "EEEE, dd.MM.y",
           "E, d.M.y"),
    "es": ("E, d MMM y", "d/M/y", "dd/MM/y", "EEEE, d/M/y", "d MMMM y", "EEEE d 'de' MMMM 'de' y",
           "d 'de' MMM 'de' y"),
    "ja": ("y年MM月dd日", "y/M/d", "y/M/d(E)", "y年M月d日(E)", "y年M月d日 EEEE", "y.M.d", "y-MM-dd"),
}
"""The styles of each locale beside them."""


def format_date(day: date, locale: str, style: str) -> str:
    """``day`` written in one of the `LENGTHS`, or in a style of `STYLES`.

    Raises:
        ImportError: Babel is not installed.
    """
    text: str = require("babel.dates", "the task 'dates'").format_date(day, style, locale)
    return text.replace("{th}", _ordinal_ending(day.day, locale))


def draw_date(rng: Random, belongs: Belongs) -> tuple[str, str]:
    """A random day from 1900 to 2099, in a random language, locale and style, as (human text, ISO 8601).

    In languages with capitals, one text in five is all in lower case and one in five all in upper case.

    Args:
        rng: where the choices come from.
        belongs: whether a text is wanted; another date is drawn until it is.

    Raises:
        ImportError: Babel is not installed.
    """
    while True:
        day = date.fromordinal(rng.randint(FIRST.toordinal(), LAST.toordinal()))
        locale = rng.choice(rng.choice(LOCALES))
        text = format_date(day, locale, rng.choice(LENGTHS + STYLES[locale]))
        text = rng.choice((str, str, str, str.lower, str.upper))(text)
        if belongs(text):
            return text, day.isoformat()


def _ordinal_ending(day: int, locale: str) -> str:
    """The ending of the day's ordinal: 1st, 2nd, 3rd, 4th, 11th; in French only the first has one, 1er."""
    if locale == "fr":
        return "er" if day == 1 else ""
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
