"""What a splitter's cuts cost: passages that stand in the corpus, held by chunks together.

    python -m benchmarks.cuts [--markdown]

Eight texts in each language, written for this purpose, are cut after so many characters, wherever
that is. Stretches of them, of whole words, are looked for in all chunks of their text by
``coverage(union=yes)``, with and without the pieces at cuts that are shorter than a run. Printed
are, of the stretches that no chunk holds as a whole, how many one chunk holds all the same, being
enough of it; how many the chunks hold together; and how many they do not, which would be called
not in the index. Then come altered stretches, with another number, name or word in the place of
one: how many of them are held together only by the pieces at cuts. ``--markdown`` prints this as
docs/changed-numbers.md has it.

What it costs is the time of an evaluation with these pieces beside one without, each stretch with
its chunks and others, ten in all. Here nearly all stretches are cut; where few are, as in the runs
that ``python -m benchmarks.coverage`` times, next to nothing is looked at.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple
from warnings import catch_warnings

from benchmarks import contradictions
from benchmarks.measuring import in_turns, machine
from krag_eval import CoverageMatcher, KragEvalWarning, OfflineRetrievalEvaluator

#: Characters of a chunk, and those it shares with the next one.
SIZES = ((20, 0), (40, 10), (100, 0), (100, 20), (300, 0))
LANGUAGES = ("en", "ko")
#: Stretches of each text, as they stand and altered, and how long they are.
N_VERBATIM, N_ALTERED = 50, 50
SHORTEST, LONGEST = 25, 160
N_RETRIEVED, ROUNDS = 10, 9
HEADINGS = (
    "chunks of", "cut", "one chunk holds it", "together, by runs alone", "together",
    "called not in the index", "altered, newly held",
)  # fmt: skip
NAMES = {"en": "English", "ko": "Korean"}
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{3,}")


class OnlyRuns(CoverageMatcher):
    """Coverage as it is without the pieces at cuts."""

    def _seams(self, *_read: Any, **_settings: Any) -> Any:
        return None


class Passage(NamedTuple):
    """A stretch of a text, and the chunks of the text."""

    text: str
    chunks: tuple[str, ...]


class Counts(NamedTuple):
    """How many stretches are what."""

    n_cut: int
    alone: int
    by_runs: int
    together: int
    altered: int
    n_altered: int


def cut(text: str, size: int, overlap: int) -> tuple[str, ...]:
    """Return the chunks of a text, so many characters each."""
    starts = range(0, max(len(text) - overlap, 1), size - overlap)
    return tuple(text[start : start + size] for start in starts)


def stretch(draw: random.Random, text: str) -> str:
    """Return a stretch of whole words."""
    while True:
        start = text.rfind(" ", 0, draw.randrange(len(text) - LONGEST)) + 1
        stop = text.rfind(" ", start, start + draw.randint(SHORTEST, LONGEST))
        if stop - start >= SHORTEST:
            return text[start:stop]


def changes(language: str, text: str) -> list[contradictions.Other]:
    """Return what puts another number, name or word in the place of one."""
    words = contradictions._ANY.findall(text)
    names = contradictions.replacing(
        _NAME, contradictions.another_of(_NAME.findall(text) or ["Orlen"])
    )
    return [
        contradictions.one_digit,
        contradictions.year,
        contradictions.another_noun(text),
        contradictions.random_word(words),
        *([names] if language == "en" else []),
    ]


def altered(draw: random.Random, text: str, kinds: Sequence[contradictions.Other]) -> str:
    """Return a stretch with something else in the place of one thing."""
    while True:
        other = draw.choice(kinds)(draw, stretch(draw, text))
        if other and other not in text:
            return other


@cache
def passages(language: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return stretches as they stand, and altered ones, each with its text."""
    draw, verbatim, others = random.Random(7), [], []
    for part in ("dev", "held"):
        for text in contradictions.texts(part, language):
            kinds = changes(language, text)
            verbatim += [(stretch(draw, text), text) for _ in range(N_VERBATIM)]
            others += [(altered(draw, text, kinds), text) for _ in range(N_ALTERED)]
    return verbatim, others


def found(passages: Sequence[Passage], matcher: CoverageMatcher) -> list[bool]:
    """Return which passages are found in all chunks of their text."""
    with catch_warnings(action="ignore", category=KragEvalWarning):
        evaluator = OfflineRetrievalEvaluator(
            [[one.text] for one in passages], [one.chunks for one in passages], matcher
        )
        result = evaluator.evaluate(None, metrics=["recall"])
    return [recall == 1 for recall in result.tables[None]["recall"]]


@cache
def measured(language: str, size: int, overlap: int) -> Counts:
    """Return what becomes of the passages of a language in chunks of a size."""
    verbatim, others = (
        [Passage(passage, cut(text, size, overlap)) for passage, text in side]
        for side in passages(language)
    )
    cut_ones = [one for one in verbatim if not any(one.text in chunk for chunk in one.chunks)]
    alone = sum(found(cut_ones, CoverageMatcher()))
    by_runs, together = (
        [found(side, matcher(union=True)) for side in (cut_ones, others)]
        for matcher in (OnlyRuns, CoverageMatcher)
    )
    newly = sum(now and not before for before, now in zip(by_runs[1], together[1], strict=True))
    n_held = sum(by_runs[0]), sum(together[0])
    return Counts(len(cut_ones), alone, *n_held, newly, len(others))


def cost(language: str, size: int, overlap: int) -> float:
    """Return the time of an evaluation with pieces at cuts, in that of one without."""
    draw, lists = random.Random(3), []
    for passage, text in passages(language)[0]:
        chunks, start = cut(text, size, overlap), text.index(passage)
        first, last = start // (size - overlap), (start + len(passage)) // (size - overlap)
        own = list(chunks[max(first - 1, 0) : last + 1])[:N_RETRIEVED]
        lists.append(own + draw.sample(chunks, min(len(chunks), N_RETRIEVED - len(own))))
    actual = [[passage] for passage, _ in passages(language)[0]]

    def evaluating(matcher: type[CoverageMatcher]) -> Callable[[], object]:
        return lambda: OfflineRetrievalEvaluator(actual, lists, matcher(union=True)).evaluate(5)

    with catch_warnings(action="ignore", category=KragEvalWarning):
        jobs = {"pieces": evaluating(CoverageMatcher), "runs": evaluating(OnlyRuns)}
        return in_turns(jobs, rounds=ROUNDS).ratio("pieces", "runs")


def cells(language: str) -> list[list[str]]:
    """Return the rows of a language as texts."""
    rows = []
    for size, overlap in SIZES:
        counts = measured(language, size, overlap)
        shared = f", {overlap} shared" * (overlap > 0)
        rows.append([
            f"{NAMES[language]}, {size} characters{shared}",
            *map(str, counts[: counts._fields.index("altered")]),
            f"{counts.n_cut - counts.by_runs} → {counts.n_cut - counts.together}",
            f"{counts.altered} of {counts.n_altered}",
        ])  # fmt: skip
    return rows


def markdown() -> str:
    """Return the table as it stands in the page."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *cells("en"), *cells("ko")]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="the table as the page has it")
    arguments = parser.parse_args()
    if arguments.markdown:
        print(markdown())
        return
    print(machine())
    print("  ".join([f"{HEADINGS[0]:<36}", *HEADINGS[1:], "cost"]))
    for language in LANGUAGES:
        for row, size in zip(cells(language), SIZES, strict=True):
            ratio = f"{cost(language, *size):.2f}"
            columns = zip(row[1:], HEADINGS[1:], strict=True)
            numbers = [f"{cell:>{len(name)}}" for cell, name in columns]
            print("  ".join([f"{row[0]:<36}", *numbers, f"{ratio:>4}"]))


if __name__ == "__main__":
    main()
