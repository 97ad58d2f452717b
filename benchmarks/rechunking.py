"""What reanchor finds after real texts were cut anew, beside a slow search and a fuzzy one.

    python -m benchmarks.rechunking FOLDER [--quick] [--show 10]

FOLDER has whole texts, ``NAME.txt``, and ``questions.jsonl`` with golden excerpts: each line is
``{"question", "corpus": NAME, "excerpts": [{"text", "start", "end"}]}``, where the two places are
characters of the text. (The general evaluation set of brandonstarxel/chunking_evaluation is such
data, once its excerpts are put so.)

All texts are cut at five sizes and overlaps, into chunks whose ids are their ordinals, so that an
id is nearly always another text in the next index. From every size to every other go two golden
sets: ids alone, of all chunks that an excerpt lies in, and quotes: the excerpts, with the id of
their chunk where one has all of it. Each label is also looked for by
``tests/shared/reference_reanchor.py``, which tries every run of words in every chunk. Printed is
how many labels are in which state; how many have another state, other ids or other alternatives
there; and of how many a chunk that was chosen lies elsewhere than the label, whose words stand
there as well.

The time, of one pair of sizes, is set beside the search that most people write first: rapidfuzz's
``partial_ratio`` of every label with every chunk.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings

from benchmarks.measuring import faster, in_turns, machine, table
from krag_eval import KragEvalWarning, reanchor
from krag_eval.datasets import Dataset
from krag_eval.reanchoring.reanchor import STATES, Reanchored

sys.path.append(str(Path(__file__).parents[1] / "tests" / "shared"))
import reference_reanchor as reference

#: Words of a chunk, and those it shares with the next one.
SIZES = ((50, 0), (100, 25), (200, 0), (200, 100), (400, 50))
#: From which to which size times are taken.
TIMED = ((200, 0), (100, 25))


class Chunk(NamedTuple):
    """A stretch of a text, from one character to before another."""

    corpus: str
    start: int
    end: int
    text: str

    def overlaps(self, corpus: str, start: int, end: int) -> bool:
        return self.corpus == corpus and self.start < end and start < self.end

    def holds(self, corpus: str, start: int, end: int) -> bool:
        return self.corpus == corpus and self.start <= start and end <= self.end


@dataclass(frozen=True)
class Index:
    """All texts, cut into chunks; the id of a chunk is its ordinal."""

    chunks: list[Chunk]

    @cached_property
    def documents(self) -> list[dict[str, str]]:
        return [{"id": str(at), "text": one.text} for at, one in enumerate(self.chunks)]

    @cached_property
    def slow(self) -> reference.Index:
        texts = {str(at): one.text for at, one in enumerate(self.chunks)}
        words = {name: reference.words_in(text) for name, text in texts.items()}
        return reference.Index(words, {name: len(text) for name, text in texts.items()})


class Label(NamedTuple):
    """A ground truth: the place it has in a text, the chunks it names, and its own text if any."""

    place: tuple[str, int, int]
    ids: tuple[str, ...]
    text: str


def texts_in(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.glob("*.txt")):
        with path.open(encoding="utf-8", newline="") as file:
            found[path.stem] = file.read()
    return found


def places_in(folder: Path, texts: dict[str, str]) -> list[tuple[str, int, int]]:
    places = []
    with (folder / "questions.jsonl").open(encoding="utf-8") as file:
        for line in map(json.loads, file):
            for one in line["excerpts"]:
                place = line["corpus"], one["start"], one["end"]
                assert texts[place[0]][place[1] : place[2]] == one["text"], place
                places.append(place)
    return [*dict.fromkeys(places)]


def cut(texts: dict[str, str], size: int, overlap: int) -> Index:
    chunks = []
    for name, text in texts.items():
        words = [one.span() for one in re.finditer(r"\S+", text)]
        for first in range(0, max(len(words) - overlap, 1), size - overlap):
            part = words[first : first + size]
            start, end = part[0][0], part[-1][1]
            chunks.append(Chunk(name, start, end, text[start:end]))
    return Index(chunks)


def ids_alone(old: Index, places: Iterable[tuple[str, int, int]]) -> list[Label]:
    """Return the chunks that excerpts lie in, each once."""
    chunks = {
        at: one for at, one in enumerate(old.chunks) for place in places if one.overlaps(*place)
    }
    return [Label((one.corpus, one.start, one.end), (str(at),), "") for at, one in chunks.items()]


def quotes(
    old: Index, places: Iterable[tuple[str, int, int]], texts: dict[str, str]
) -> Iterator[Label]:
    """Yield the excerpts; with an id where a chunk has all of it."""
    for place in places:
        whole = [str(at) for at, one in enumerate(old.chunks) if one.holds(*place)]
        yield Label(place, tuple(whole[:1]), texts[place[0]][place[1] : place[2]])


def dataset_of(labels: Iterable[Label]) -> Dataset:
    """Return one query per label."""
    actual: list[list[Any]] = []
    for one in labels:
        named = {"id": one.ids[0]} if one.ids else {}
        actual.append([{"page_content": one.text, **named}])
    return Dataset([*range(len(actual))], actual)


def expected(label: Label, old: Index, new: Index) -> reference.Standing:
    """Return what the slow search finds."""
    words = reference.words_in(label.text or old.chunks[int(label.ids[0])].text)
    homes = label.ids
    if not homes:
        found = reference.standing(words, {}, old.slow)
        homes = found.new
    chunks = {one: old.slow.chunks[one] for one in homes}
    return reference.standing(words, chunks, new.slow)


def differences(
    labels: list[Label], found: Reanchored, old: Index, new: Index
) -> Iterator[tuple[str, Label, Any, reference.Standing]]:
    """Yield the labels of which the slow search says something else, and what is other."""
    for label, row in zip(labels, found.rows, strict=True):
        wanted = expected(label, old, new)
        for what, ours, theirs in (
            ("state", row.state, wanted.state),
            ("ids", row.new, wanted.new),
            ("alternatives", row.alternatives, wanted.others),
        ):
            if ours != theirs:
                yield what, label, row, wanted
                break


def is_elsewhere(label: Label, row: Any, new: Index) -> bool:
    """Tell whether a chunk that was chosen lies somewhere else than the label."""
    return not all(new.chunks[int(one)].overlaps(*label.place) for one in row.new)


def found_by(labels: list[Label], old: Index, new: Index) -> Reanchored:
    with catch_warnings(action="ignore", category=KragEvalWarning):
        return reanchor(dataset_of(labels), old.documents, new.documents)


def fuzzy(labels: list[Label], old: Index, new: Index) -> list[int]:
    """Return the chunk of the best ``partial_ratio`` for each label."""
    from rapidfuzz import fuzz, process

    chunks, found = [one.text for one in new.chunks], []
    for one in labels:
        text = one.text or old.chunks[int(one.ids[0])].text
        best = process.extractOne(text, chunks, scorer=fuzz.partial_ratio)
        found.append(best[2])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("folder", type=Path, help="texts, and questions.jsonl")
    parser.add_argument("--quick", action="store_true", help="two sizes, one round")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="N differences of each kind"
    )
    options = parser.parse_args()
    texts = texts_in(options.folder)
    places = places_in(options.folder, texts)
    sizes = TIMED if options.quick else SIZES
    indexes = {size: cut(texts, *size) for size in sizes}
    counts: dict[str, Counter[str]] = {"ids": Counter(), "quotes": Counter()}
    shown: Counter[str] = Counter()
    for before, after in permutations(sizes, 2):
        old, new = indexes[before], indexes[after]
        for kind, labels in (
            ("ids", ids_alone(old, places)),
            ("quotes", [*quotes(old, places, texts)]),
        ):
            found = found_by(labels, old, new)
            counts[kind].update(row.state for row in found.rows)
            counts[kind]["labels"] += len(labels)
            counts[kind]["elsewhere"] += sum(
                is_elsewhere(label, row, new) for label, row in zip(labels, found.rows, strict=True)
            )
            for what, label, row, wanted in differences(labels, found, old, new):
                counts[kind][f"other {what}"] += 1
                shown[what] += 1
                if shown[what] <= options.show:
                    print(f"{kind}, {before} to {after}, {label.place}: {row}\n  {wanted}\n")
    columns = ("labels", *STATES, "other state", "other ids", "other alternatives", "elsewhere")
    print(f"| {' | '.join(('', *columns))} |\n|{'---|' * (len(columns) + 1)}")
    for kind, of in counts.items():
        print(f"| {kind} | {' | '.join(f'{of[one]:,}' for one in columns)} |")
    old, new = (indexes[size] for size in TIMED)
    labels = [*quotes(old, places, texts)]
    rounds = in_turns(
        {
            "reanchor": lambda: found_by(labels, old, new),
            "partial_ratio": lambda: fuzzy(labels, old, new),
        },
        1 if options.quick else 5,
    )
    name = f"reanchor, {len(labels)} quotes in {len(new.chunks)} chunks, against partial_ratio"
    print(f"\n{machine()}\n{table([faster(name, rounds, 'reanchor', 'partial_ratio')])}")


if __name__ == "__main__":
    main()
