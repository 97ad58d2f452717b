"""Long texts, which Ctrl-C can interrupt here, against one call of rapidfuzz, which it cannot.

    python -m benchmarks.long_texts [--quick]

Two texts that are unlike but of one kind: frequent letters of English, Hangul syllables as unevenly
frequent as in prose, words by Zipf's law. Every score is compared with rapidfuzz's, and a
difference in the last bit ends the run.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from itertools import accumulate

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from benchmarks.measuring import Row, faster, in_turns, machine, table
from krag_eval import FuzzyMatcher
from krag_eval.matching.waiting import common_subsequence

LETTERS = (
    " " * 18 + "e" * 10 + "t" * 8 + "a" * 7 + "oooooooiiiiiinnnnnnsssssshhhhhhrrrrr" + "ddlluucm"
)


def rows(quick: bool) -> list[Row]:
    size, slid = (60_000, 2_000) if quick else (200_000, 5_000)
    draw = random.Random(0)
    return [
        *(
            row(
                f"{size:,} {what}, in blocks",
                lambda first, second: common_subsequence(codes(first), codes(second), ignore),
                LCSseq.similarity,
                *(text(draw, kinds, size) for _ in range(2)),
            )
            for what, kinds in (("letters", LETTERS), ("syllables", 1_500), ("words", 30_000))
        ),
        row(
            f"partial_ratio, {slid:,} letters along as many",
            lambda first, second: FuzzyMatcher("partial_ratio").similarity(first, second),
            lambda first, second: fuzz.partial_ratio(first, second) / 100,
            *(text(draw, LETTERS, slid) for _ in range(2)),
        ),
    ]


def row(
    name: str,
    ours: Callable[[str, str], float],
    theirs: Callable[[str, str], float],
    first: str,
    second: str,
) -> Row:
    timings = in_turns(
        {"ours": lambda: ours(first, second), "theirs": lambda: theirs(first, second)}, rounds=3
    )
    if timings.results["ours"] != timings.results["theirs"]:
        raise SystemExit(f"{name}: the score differs from rapidfuzz's")
    return faster(name, timings, "ours", "theirs")


def text(draw: random.Random, kinds: str | int, size: int) -> str:
    """Draw letters as they come, or so many kinds of tokens, the n-th with weight 1 / n."""
    if isinstance(kinds, str):
        return "".join(draw.choices(kinds, k=size))
    weights = list(accumulate(1 / rank for rank in range(1, kinds + 1)))
    # Words are spelled as RougeMatcher does it: the frequent ones are the low code points.
    start = 0xAC00 if kinds < 10_000 else 0
    return "".join(map(chr, draw.choices(range(start, start + kinds), cum_weights=weights, k=size)))


def codes(spelled: str) -> np.ndarray:
    return np.frombuffer(spelled.encode("utf-32-le"), np.dtype("<i4"))


def ignore(cells: int) -> None:
    """Hear of progress."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter texts")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
