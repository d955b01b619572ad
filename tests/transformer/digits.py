"""A language pair small enough to be learnt in two seconds: number words into Chinese ones, word by word."""

from itertools import product

DIGITS = {"one": "一", "two": "二", "three": "三"}
SENTENCES = [" ".join(words) for length in (1, 2, 3) for words in product(DIGITS, repeat=length)]


def translated(sentence):
    """The right answer."""
    return " ".join(DIGITS[word] for word in sentence.split())


PAIRS = [(sentence, translated(sentence)) for sentence in SENTENCES]
