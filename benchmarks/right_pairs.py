"""How many right pairs the guard of coverage loses, on questions of one's own.

    python -m benchmarks.right_pairs FOLDER

A pair is right by where its texts stand, not by what any matcher says. FOLDER holds files
``*.jsonl.gz`` whose lines are objects with "actual", "predicted", "actual_ids" and "predicted_ids":
a document is right that has the id of the passage, or, where ids are "corpus:start-end", at least
80 % of its characters. Beside them may lie a folder with ``questions.jsonl``, whose lines have a
"corpus" and "excerpts" of it, each with "text", "start" and "end", and a file CORPUS.txt for each:
the corpora are cut into overlapping windows, and all are looked through.

Lost is a right pair that coverage finds without its guard, and not with it. Each is shown, with
what coverage says is another text there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from krag_eval import CoverageMatcher
from krag_eval.core.documents import QuerySet

HOLDS = 0.8
#: Of windows, in characters or words.
SIZES = ((400, "characters"), (1000, "characters"), (60, "words"), (200, "words"))
_SPAN = re.compile(r"(.*):(\d+)-(\d+)")
#: A passage and a document that holds it.
Pair = tuple[str, str]


def holds(passage: str, document: str) -> bool:
    """Tell by their ids whether a document holds a passage."""
    spans = _SPAN.fullmatch(passage), _SPAN.fullmatch(document)
    if not all(spans):
        return passage == document
    (corpus, start, stop), (other, first, last) = (one.groups() for one in spans if one)
    shared = min(int(stop), int(last)) - max(int(start), int(first))
    return corpus == other and shared >= HOLDS * (int(stop) - int(start))


def of_run(path: Path) -> Iterator[Pair]:
    """Yield the right pairs of a file of questions and what was retrieved."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            for passage, its_id in zip(record["actual"], record["actual_ids"], strict=True):
                for text, other in zip(record["predicted"], record["predicted_ids"], strict=True):
                    if holds(its_id, other):
                        yield passage, text


def windows(text: str, size: int, *, in_words: bool) -> list[tuple[int, int]]:
    """Return where windows of so many characters or words begin and end; each half overlaps."""
    starts = [one.start() for one in re.finditer(r"\S+" if in_words else r"(?s).", text)]
    starts = [*starts[:: size // 2], len(text), len(text)]
    return [(one, last) for (one, _), (_, last) in pairwise(pairwise(starts))]


def of_corpora(folder: Path, size: int, *, in_words: bool) -> Iterator[Pair]:
    """Yield the right pairs of excerpts and windows of the corpora that they are from."""
    corpora = {path.stem: path.read_bytes().decode() for path in folder.glob("*.txt")}
    cut = {name: windows(text, size, in_words=in_words) for name, text in corpora.items()}
    for line in (folder / "questions.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        for one in record["excerpts"]:
            own = f"{record['corpus']}:{one['start']}-{one['end']}"
            for start, stop in cut[record["corpus"]]:
                if holds(own, f"{record['corpus']}:{start}-{stop}"):
                    yield one["text"], corpora[record["corpus"]][start:stop]


def lost(pairs: Iterable[Pair]) -> tuple[int, int, list[Pair]]:
    """Return how many pairs there are, how many words alone find, and which the guard loses."""
    right = [*pairs]
    sides = [[[text] for text in side] for side in zip(*right, strict=True)]
    found = []
    for matcher in (CoverageMatcher(guard="off"), CoverageMatcher()):
        matches = matcher.match(QuerySet.from_lists(*sides))
        found.append({*matches.item[matches.similarity >= matcher.threshold].tolist()})
    return len(right), len(found[0]), [right[one] for one in np.sort([*(found[0] - found[1])])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="files of questions, and folders of corpora")
    folder = parser.parse_args().folder
    kinds = {path.name: of_run(path) for path in sorted(folder.glob("*.jsonl.gz"))}
    for path in sorted(folder.glob("*/questions.jsonl")):
        for size, unit in SIZES:
            cut = of_corpora(path.parent, size, in_words=unit == "words")
            kinds[f"{path.parent.name}, {size} {unit}"] = cut
    print("  right  found  lost  questions")
    total = np.zeros(3, np.int64)
    for name, right in kinds.items():
        n_right, n_found, missed = lost(right)
        total += (n_right, n_found, len(missed))
        print(f"{n_right:7,}{n_found:7,}{len(missed):6}  {name}", flush=True)
        for passage, text in missed:
            print(f"    {CoverageMatcher().said_otherwise(passage, text)}: {passage!r}")
    print("{:7,}{:7,}{:6}  all".format(*total.tolist()))


if __name__ == "__main__":
    main()
