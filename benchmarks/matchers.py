"""How right each matcher decides about retrieved chunks, and what it costs.

    python -m benchmarks.matchers FILE.jsonl[.gz] [--runs N]

Each line of the file is an object with "actual" and "predicted", two lists of texts, and
"actual_ids" and "predicted_ids", which say where each text stands: "corpus:start-end" in
characters. So the truth about every pair is known without any matcher: a retrieved chunk is right
if it holds at least 80 % of the golden excerpt by these offsets, or all its words, one after
another (the same passage may stand in a corpus twice).

Precision, recall and F1 are those of the decision "this chunk is right" over all pairs. Times are
CPU times of one process for preparing and scoring everything, imports excluded, the median of
several runs. Embeddings are left out: their numbers and their cost are those of the model.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rouge import dense_scores, timed
from krag_eval.core.documents import QuerySet
from krag_eval.core.matching.base import AndMatcher, Matcher, OrMatcher
from krag_eval.core.matching.coverage import CoverageMatcher, NumbersMatcher
from krag_eval.core.matching.exact import ContainsMatcher, ExactTextMatcher
from krag_eval.core.matching.joins import FloatArray
from krag_eval.core.matching.tokenizers import unicode_tokens
from krag_eval.matchers.fuzzy import FuzzyMatcher
from krag_eval.matchers.rouge import RougeMatcher

Record = dict[str, Any]
BoolArray = NDArray[np.bool_]

HOLDS = 0.8


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="JSONL with texts, and offsets as ids")
    parser.add_argument("--runs", type=int, default=5, help="timed runs per matcher (default 5)")
    arguments = parser.parse_args()
    records, runs = records_of(arguments.file), arguments.runs
    queries = QuerySet.from_lists([r["actual"] for r in records], [r["predicted"] for r in records])
    truth = np.fromiter(is_right(records), np.bool_)
    counts = f"{len(records):,} queries, {len(truth):,} pairs, {truth.sum():,} right"
    print(f"{arguments.file}: {counts}")
    print(f"CPU time, median of {runs} runs; one time for all thresholds of a matcher\n")
    print("precision  recall     F1  misses  false alarms  ms per 1,000 pairs    >=  matcher")
    for matcher, thresholds in matchers():
        seconds, scores = timed_scores(matcher, queries, runs)
        time = f"{seconds * 1e6 / len(truth):.1f}"
        for threshold in thresholds or (matcher.threshold,):
            # A similarity of 0 is never a match, whatever the threshold.
            decided = (scores >= threshold) & (scores > 0)
            shown = f"{threshold:g}" if thresholds else "-"
            print(f"{quality(decided, truth)}{time:>20}{shown:>6}  {matcher.signature}", flush=True)
            time = '"'


def timed_scores(matcher: Matcher, queries: QuerySet, runs: int) -> tuple[float, FloatArray]:
    timings = [timed(lambda: matcher.match(queries)) for _ in range(runs)]
    return median(seconds for seconds, _ in timings), dense_scores(timings[0][1], queries)


def matchers() -> Iterator[tuple[Matcher, tuple[float, ...]]]:
    """Yield each matcher with the thresholds to try; none for those that decide without one."""
    yield ExactTextMatcher(), ()
    yield ContainsMatcher(), ()
    yield ContainsMatcher(word_boundaries=False), ()
    yield CoverageMatcher(), (0.5, 0.7, 0.8, 0.9, 1.0)
    yield CoverageMatcher(numbers="anywhere", polarity=False), (0.5, 0.7, 0.8, 0.9, 1.0)
    yield CoverageMatcher(numbers="ignore", polarity=False), (0.7, 0.8, 0.9)
    yield CoverageMatcher(tokenizer="unicode"), (0.8,)
    yield CoverageMatcher(tokenizer="character", min_run=15), (0.8,)
    yield CoverageMatcher(tokenizer="character", min_run=30), (0.8,)
    for statistic, rouge_type in product(("fmeasure", "recall"), ("rouge1", "rouge2", "rougeL")):
        yield RougeMatcher(rouge_type, statistic=statistic), (0.5, 0.7, 0.8)
    yield FuzzyMatcher("ratio"), (0.5, 0.8)
    yield FuzzyMatcher("partial_ratio"), (0.5, 0.8, 0.9)
    yield FuzzyMatcher("token_set_ratio"), (0.5, 0.8, 0.9)
    rouge = RougeMatcher("rouge2", 0.8, statistic="recall")
    yield AndMatcher(CoverageMatcher(), rouge), ()
    yield OrMatcher(CoverageMatcher(), ContainsMatcher()), ()
    yield AndMatcher(CoverageMatcher(), NumbersMatcher()), ()


def quality(decided: BoolArray, truth: BoolArray) -> str:
    """Return precision, recall, F1, misses and false alarms of a decision, in columns."""
    found = np.count_nonzero(decided & truth)
    n_decided, n_right = np.count_nonzero(decided), np.count_nonzero(truth)
    precision = f"{found / n_decided:.3f}" if n_decided else "-"
    f1 = 2 * found / (n_decided + n_right)
    return (
        f"{precision:>9}{found / n_right:>8.3f}{f1:>7.3f}"
        f"{n_right - found:>8,}{n_decided - found:>14,}"
    )


def is_right(records: list[Record]) -> Iterator[bool]:
    """Yield the truth about all pairs, by query, then ground truth, then rank."""
    for record in records:
        golden = zip(record["actual"], record["actual_ids"], strict=True)
        retrieved = zip(record["predicted"], record["predicted_ids"], strict=True)
        for (excerpt, where), (chunk, other) in product(golden, retrieved):
            yield share_held(where, other) >= HOLDS or spelled(excerpt) in spelled(chunk)


def share_held(excerpt: str, chunk: str) -> float:
    """Return the share of an excerpt's characters that a chunk holds, by their ids."""
    corpus, start, end = place(excerpt)
    other_corpus, other_start, other_end = place(chunk)
    if corpus != other_corpus:
        return 0.0
    return max(0, min(end, other_end) - max(start, other_start)) / (end - start)


def place(identity: str) -> tuple[str, int, int]:
    corpus, _, span = identity.rpartition(":")
    start, _, end = span.partition("-")
    return corpus, int(start), int(end)


def spelled(text: str) -> str:
    """Return the words of a text with a space on either side of each."""
    return f" {' '.join(unicode_tokens(text))} "


def records_of(path: Path) -> list[Record]:
    open_file = gzip.open if path.suffix == ".gz" else open
    with open_file(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


if __name__ == "__main__":
    main()
