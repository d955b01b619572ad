"""Generated tasks: endless pairs of strings whose right answer is known, split by a hash of the source."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from string import ascii_lowercase as ALPHABET

from transformer.data.dates import Belongs, draw_date
from transformer.data.parallel_text import Pair, hash_of

SPLITS = ("train", "valid", "test")
LONGEST = 10  # symbols in a string of copy, reverse and sort
FEW = 200  # a length with fewer distinct strings than this is not divided among the splits


@dataclass(frozen=True)
class Task:
    """A generated task, whose every source has a known answer.

    Attributes:
        name: as on the command line.
        tokenizer_kind: the kind of tokenizer that suits its text: ``"words"`` or ``"characters"``.
        draw: makes one (source, target) pair from a generator and a function that says whether a source
            belongs to the wanted split.
    """

    name: str
    tokenizer_kind: str
    draw: Callable[[Random, Belongs], Pair]

    def pairs(self, split: str, count: int, seed: int) -> list[Pair]:
        """``count`` random (source, target) pairs of a split, a function of the arguments alone.

        A pair may occur several times. With the same seed, a smaller ``count`` gives the first pairs of a larger.

        Args:
            split: ``"train"``, ``"valid"`` or ``"test"``. No source is in two of them, whatever the seeds,
                except strings of copy, reverse and sort of a length at which fewer than 200 distinct
                strings exist.

        Raises:
            ValueError: unknown split.
            ImportError: the task is ``dates``, and Babel is not installed.
        """
        if split not in SPLITS:
            raise ValueError(f"Task.pairs: unknown split {split!r}; there are {', '.join(SPLITS)}")
        rng = Random(f"{self.name} {split} {seed}")
        return [self.draw(rng, lambda source: split_of(source) == split) for _ in range(count)]


def split_of(source: str) -> str:
    """The split that a source belongs to: of 20 sources, on average 18 ``train``, 1 ``valid`` and 1 ``test``."""
    return {0: "test", 1: "valid"}.get(hash_of(source) % 20, "train")


def _symbols(alphabet: str, answer: Callable[[list[str]], list[str]]) -> Callable[[Random, Belongs], Pair]:
    """Strings of 1 to 10 symbols, each length equally likely, with the result of ``answer``."""

    def draw(rng: Random, belongs: Belongs) -> Pair:
        # The length is drawn once: a new length for each rejected string would favour short strings, which
        # no split rejects.
        length = rng.randint(1, LONGEST)
        while True:
            symbols = rng.choices(alphabet, k=length)
            source = " ".join(symbols)
            if len(alphabet) ** length < FEW or belongs(source):
                return source, " ".join(answer(symbols))

    return draw


def _draw_addition(rng: Random, belongs: Belongs) -> Pair:
    """Two numbers of 1 to 3 digits, four in five of them of 3, and their sum."""
    while True:
        x, y = map(rng.choice, rng.choices(_NUMBERS, weights=(1, 3, 16), k=2))
        source = f"{_spaced(x)} + {_spaced(y)}"
        if belongs(source):
            return source, _spaced(x + y)


_NUMBERS = range(10), range(10, 100), range(100, 1000)


def _spaced(number: int) -> str:
    return " ".join(str(number))


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("copy", "words", _symbols(ALPHABET[:10], list)),  # c a b → c a b
        Task("reverse", "words", _symbols(ALPHABET, lambda symbols: symbols[::-1])),  # c a b → b a c
        Task("sort", "words", _symbols(ALPHABET[:10], sorted)),  # c a b → a b c
        Task("addition", "words", _draw_addition),  # 1 2 3 + 4 5 6 → 5 7 9
        Task("dates", "characters", draw_date),  # March 3rd, 2021 → 2021-03-03
    )
}
"""Every generated task by its name."""


def get_task(name: str) -> Task:
    """The task called ``name``.

    Raises:
        ValueError: the name is unknown; the message lists the known ones.
    """
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]
