"""How much faster ROUGE is here than in rouge-score, on the same pairs and with the same scores.

    python -m benchmarks.rouge [FILE.jsonl[.gz]] [--runs N] [--krag-queries N]

Without a file, 200 queries of 3 ground-truth and 10 predicted texts of 150 generated words are
scored: 6,000 pairs of some 1,900 distinct texts. With one, each line is an object with "actual" and
"predicted", two lists of texts. Every score is compared with rouge-score's, and any difference, be
it in the last bit, ends the run.

Times are CPU times of one process, imports excluded, each the median of several runs. The last
column is krag's way of using rouge-score: with its stemmer, each pair scored anew for every metric
and every k, 11 times in all. That takes long, so it is timed on the first queries only and
compared by time per pair; it grows with the pairs alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import random
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import TypeVar

import nltk.stem.porter  # noqa: F401 - imported here so that nobody's time includes it
import numpy as np
import rapidfuzz.process  # noqa: F401 - likewise
from rouge_score.rouge_scorer import RougeScorer

from krag_eval.documents import QuerySet
from krag_eval.matching.joins import FloatArray, Matches
from krag_eval.matching.rouge import RougeMatcher

Result = TypeVar("Result")

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
KRAG_SCORINGS = 11
REPEATS = 5


def main() -> None:
    arguments = parsed_arguments()
    queries = queries_of_file(arguments.file) if arguments.file else generated_queries()
    few = QuerySet.from_lists(
        queries.actual[: arguments.krag_queries], queries.predicted[: arguments.krag_queries]
    )
    n_pairs, n_few = count_pairs(queries), count_pairs(few)
    print(description(queries, str(arguments.file or "generated text"), arguments.runs))
    print(f"krag's way is timed on the first {few.n_queries} queries, {n_few:,} pairs.\n")
    print(f"{'':8}{'stemmer':>9}{'here':>10}{'rouge-score':>13}{'ratio':>8}{'krag':>9}")
    for stemmer in (False, True):
        for rouge_type in ROUGE_TYPES:
            ours, theirs = timed_side_by_side(queries, rouge_type, stemmer, arguments.runs)
            ratio = median(their / our for their, our in zip(theirs, ours, strict=True))
            # krag always stems, so it has nothing to be compared with in the other rows.
            krag = median_time_of_krag(few, rouge_type, arguments.runs) if stemmer else None
            krag_ratio = f"{krag / n_few / (median(ours) / n_pairs):,.0f}×" if krag else "–"
            print(
                f"{rouge_type:8}{'yes' if stemmer else 'no':>9}{median(ours) * 1e3:>7.0f} ms"
                f"{median(theirs):>11.2f} s{ratio:>7.0f}×{krag_ratio:>9}",
                flush=True,
            )
    print(f"\nAll scores are equal, bit for bit ({n_pairs:,} pairs in each row).")


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="JSONL with actual and predicted texts")
    parser.add_argument("--runs", type=int, default=3, help="runs of rouge-score (default 3)")
    parser.add_argument("--krag-queries", type=int, default=10, help="queries timed krag's way")
    return parser.parse_args()


def description(queries: QuerySet, source: str, runs: int) -> str:
    texts = {text for lists in (queries.actual, queries.predicted) for row in lists for text in row}
    versions = ", ".join(f"{name} {version(name)}" for name in ("rouge-score", "nltk", "rapidfuzz"))
    return (
        f"{source}: {queries.n_queries:,} queries, {count_pairs(queries):,} pairs, "
        f"{len(texts):,} distinct texts, {sum(map(len, map(str.split, texts))):,} words in them\n"
        f"Python {platform.python_version()}, numpy {np.__version__}, {versions}; CPU time, median "
        f"of {runs} runs"
    )


def timed_side_by_side(
    queries: QuerySet, rouge_type: str, stemmer: bool, runs: int
) -> tuple[list[float], list[float]]:
    """Time both in turn, and compare their scores in every run."""
    ours, theirs = [], []
    for _ in range(runs):
        times = []
        for _ in range(REPEATS):
            matcher = RougeMatcher(rouge_type, tokenizer="rouge_score", stemmer=stemmer)
            seconds, matches = timed(lambda matcher=matcher: matcher.match(queries))
            times.append(seconds)
        ours.append(median(times))
        scorer = RougeScorer([rouge_type], use_stemmer=stemmer)
        seconds, expected = timed(lambda scorer=scorer: scores_of_rouge_score(scorer, queries))
        theirs.append(seconds)
        if not np.array_equal(dense_scores(matches, queries), np.array(expected)):
            raise SystemExit(f"{rouge_type}, stemmer={stemmer}: scores differ from rouge-score's")
    return ours, theirs


def median_time_of_krag(queries: QuerySet, rouge_type: str, runs: int) -> float:
    scorer = RougeScorer([rouge_type], use_stemmer=True)

    def score_again_and_again() -> None:
        for _ in range(KRAG_SCORINGS):
            scores_of_rouge_score(scorer, queries)

    return median(timed(score_again_and_again)[0] for _ in range(runs))


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def pairs(queries: QuerySet) -> Iterator[tuple[str, str]]:
    """Yield the pairs of all queries, by ground-truth text, then rank."""
    for actual, predicted in zip(queries.actual, queries.predicted, strict=True):
        for truth in actual:
            for document in predicted:
                yield truth, document


def count_pairs(queries: QuerySet) -> int:
    return int(queries.n_items @ queries.n_predicted)


def scores_of_rouge_score(scorer: RougeScorer, queries: QuerySet) -> list[float]:
    (rouge_type,) = scorer.rouge_types
    return [scorer.score(*pair)[rouge_type].fmeasure for pair in pairs(queries)]


def dense_scores(matches: Matches, queries: QuerySet) -> FloatArray:
    """Return one score per pair, in the order of :func:`pairs`."""
    per_item = queries.n_predicted[queries.item_query]
    scores = np.zeros(int(per_item.sum()))
    first = np.cumsum(per_item) - per_item
    scores[first[matches.item] + matches.rank - 1] = matches.similarity
    return scores


def queries_of_file(path: Path) -> QuerySet:
    open_file = gzip.open if path.suffix == ".gz" else open
    with open_file(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    return QuerySet.from_lists(
        [record["actual"] for record in records], [record["predicted"] for record in records]
    )


def generated_queries(seed: int = 0) -> QuerySet:
    """Draw texts with as many different words, as unevenly frequent, as in English prose."""
    draw = random.Random(seed)
    words = generated_words(draw, 15_000)
    # Frequent words are short, and short words are not stemmed. With this much disorder 60 % of the
    # running words have more than three letters, as in a mixed English corpus.
    words.sort(key=lambda word: len(word) + 65 * draw.random())
    weights = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))  # Zipf's law
    texts = [
        " ".join(draw.choices(words, cum_weights=weights, k=150)).capitalize() + "."
        for _ in range(3_780)
    ]
    return QuerySet.from_lists(
        [draw.sample(texts, 3) for _ in range(200)], [draw.sample(texts, 10) for _ in range(200)]
    )


def generated_words(draw: random.Random, n: int) -> list[str]:
    """Make up words of syllables and English endings, so that there is something to stem.

    As of the words of a mixed English corpus, a third have no ending that the stemmer knows.
    """
    consonants = [*"bcdfghklmnprstvw", "st", "tr", "pl", "cr", "sh", "ch", "th", "br", "gr"]
    vowels = [*"aeiouy", "ea", "ou", "ai"]
    endings = [*"dehklmnprtssss", "ed", "ing", "er", "ly", "ation", "ness", "al", "ment", "ize"]
    words: dict[str, None] = {}
    while len(words) < n:
        syllables = draw.choice((1, 1, 2, 2, 3))
        stem = "".join(draw.choice(consonants) + draw.choice(vowels) for _ in range(syllables))
        words[stem + draw.choice(endings)] = None
    return list(words)


if __name__ == "__main__":
    main()
