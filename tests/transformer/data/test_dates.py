"""Dates: what people write in each language, against dates worked out by hand; one answer for every text."""

import re
from datetime import date, timedelta

import pytest

from transformer.data import dates
from transformer.data.tasks import get_task


@pytest.fixture(autouse=True)
def _babel():
    pytest.importorskip("babel", reason="dates need the data extra")


def written(day, locale):
    return {dates.format_date(day, locale, style) for style in dates.LENGTHS + dates.STYLES[locale]}


# 3 March 2021 was a Wednesday, 1 May 1999 a Saturday.
@pytest.mark.parametrize(("locale", "day", "texts"), [
    ("en_US", date(2021, 3, 3), ["Wednesday, March 3, 2021", "March 3rd, 2021", "Mar 3, 2021"]),
    ("en_GB", date(1999, 5, 1), ["Saturday, 1st May 1999", "1st of May 1999", "01 May 1999"]),
    ("en_GB", date(2021, 3, 11), ["11th of March 2021"]),
    ("fr", date(1999, 5, 1), ["samedi 1er mai 1999", "le 1er mai 1999", "01/05/1999"]),
    ("de", date(2021, 3, 3), ["Mittwoch, 3. März 2021", "Mittwoch, den 3. März 2021", "03.03.2021"]),
    ("es", date(1999, 5, 1), ["sábado 1 de mayo de 1999", "01/05/1999"]),
    ("ja", date(1999, 5, 1), ["1999年5月1日土曜日", "1999年5月1日(土)", "1999/5/1"]),
])
def test_texts_worked_out_by_hand(locale, day, texts):
    assert set(texts) <= written(day, locale)


def test_no_text_has_two_answers():
    """Every locale, style and case over a leap year; other years differ in their digits. English names the month."""
    answers: dict[str, date] = {}
    for day in (date(2024, 1, 1) + timedelta(days=n) for n in range(366)):
        for locale in dates.STYLES:
            for text in written(day, locale):
                assert re.findall(r"\d{3,}", text) == [str(day.year)]
                assert re.search("[A-Z]", text) or not locale.startswith("en")
                for cased in (text, text.lower(), text.upper()):
                    assert answers.setdefault(cased, day) == day, cased


def test_drawn_dates_cover_years_languages_styles_and_cases():
    texts, days = zip(*get_task("dates").pairs("train", 6000, seed=0), strict=True)
    assert {date.fromisoformat(iso).year for iso in days} == set(range(1900, 2100))
    for word in ("March", "märz", "MÄRZ", "mercredi", "miércoles", "曜日", "3rd", "1er", "2ND", "den "):
        assert any(word in text for text in texts), word
