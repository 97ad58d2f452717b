"""How much faster ROUGE is here than in other packages, on the same pairs, side by side.

    python -m benchmarks.rouge [FILE.jsonl[.gz]] [--rounds N] [--few N]

Without a file, 200 queries of 3 ground-truth and 10 predicted texts of 150 generated words are
scored: 6,000 pairs of some 1,900 distinct texts. With one, each line is an object with "actual" and
"predicted", two lists of texts. Every score is compared with rouge-score's, and any difference, be
it in the last bit, ends the run. Other packages tokenise or count otherwise: how many of their
scores are rouge-score's (to 6 digits) stands beside their times, for speed with other numbers is no
comparison.

Times are CPU times of one process, imports excluded, each the median of several rounds. "krag's
calls" is krag's way of using rouge-score: with its stemmer, each pair scored anew for every metric
and every k, 11 times in all. Whatever takes long and shares nothing between pairs is timed on the
first queries only and compared by time per pair. "The floor" is to split each distinct text at its
spaces, lowered, once, which anything that looks at words must do.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import nltk.stem.porter  # noqa: F401 - imported here so that nobody's time includes it
import numpy as np
import rapidfuzz.process  # noqa: F401 - likewise
from rouge_score.rouge_scorer import RougeScorer

from benchmarks.measuring import Row, faster, in_turns, machine, spelled_seconds, table
from krag_eval.core.documents import QuerySet
from krag_eval.core.matching.joins import FloatArray, Matches
from krag_eval.matchers.rouge import RougeMatcher

Result = TypeVar("Result")

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")
#: (stemmer, type) -> how many times as fast as rouge-score it is meant to be
GOALS = {
    (False, "rouge1"): 25, (False, "rouge2"): 20, (False, "rougeL"): 350,
    (True, "rouge1"): 80, (True, "rouge2"): 80, (True, "rougeL"): 200,
}  # fmt: skip
KRAG_SCORINGS = 11
REPEATS = 5


def rows(quick: bool) -> list[Row]:
    return rows_of(generated_queries(), rounds=1 if quick else 3, few_queries=3 if quick else 10)


def rows_of(queries: QuerySet, rounds: int, few_queries: int) -> list[Row]:
    few = QuerySet.from_lists(queries.actual[:few_queries], queries.predicted[:few_queries])
    found = []
    for stemmer in (False, True):
        for rouge_type in ROUGE_TYPES:
            found.append(beside_rouge_score(queries, rouge_type, stemmer, rounds))
            if stemmer:  # krag always stems, so it has nothing to be compared with elsewhere
                found.append(beside_krag(queries, few, rouge_type, rounds))
            else:
                found += beside_other_packages(queries, few, rouge_type, rounds)
    return [*found, beside_the_floor(queries, rounds)]


def beside_the_floor(queries: QuerySet, rounds: int) -> Row:
    def split_each_once() -> int:
        both = (queries.actual, queries.predicted)
        texts = {text for lists in both for texts in lists for text in texts}
        return sum(len(text.lower().split()) for text in texts)

    timings = in_turns(
        {"ours": lambda: matches_of(queries, "rouge1", False), "theirs": split_each_once},
        max(rounds, 3),
        repeats={"ours": REPEATS, "theirs": REPEATS},
    )
    return Row(
        "rouge1 unstemmed, the floor",
        timings.ratio("ours", "theirs"),
        unit="× the floor",
        ours=spelled_seconds(timings.median("ours")),
        theirs=spelled_seconds(timings.median("theirs")),
        note="each distinct text split at its spaces once",
    )


def beside_rouge_score(queries: QuerySet, rouge_type: str, stemmer: bool, rounds: int) -> Row:
    """Time both in turn, and compare all their scores."""
    scorer = RougeScorer([rouge_type], use_stemmer=stemmer)
    timings = in_turns(
        {
            "ours": lambda: matches_of(queries, rouge_type, stemmer),
            "theirs": lambda: scores_of_rouge_score(scorer, queries),
        },
        rounds,
        repeats={"ours": REPEATS},
    )
    expected = np.array(timings.results["theirs"])
    if not np.array_equal(dense_scores(timings.results["ours"], queries), expected):
        raise SystemExit(f"{rouge_type}, stemmer={stemmer}: scores differ from rouge-score's")
    name = f"{rouge_type} {'stemmed' if stemmer else 'unstemmed'}, rouge-score"
    note = f"{len(expected):,} pairs, all equal bit for bit"
    at_least = GOALS[stemmer, rouge_type]
    return faster(name, timings, "ours", "theirs", at_least=at_least, note=note)


def beside_krag(queries: QuerySet, few: QuerySet, rouge_type: str, rounds: int) -> Row:
    """Time krag's calls on a few queries, and compare by time per pair."""
    scorer = RougeScorer([rouge_type], use_stemmer=True)

    def score_again_and_again() -> None:
        for _ in range(KRAG_SCORINGS):
            scores_of_rouge_score(scorer, few)

    timings = in_turns(
        {"ours": lambda: matches_of(queries, rouge_type, True), "theirs": score_again_and_again},
        rounds,
        repeats={"ours": REPEATS},
    )
    n_pairs, n_few = count_pairs(queries), count_pairs(few)
    return Row(
        f"{rouge_type} stemmed, krag's calls",
        timings.ratio("theirs", "ours") * n_pairs / n_few,
        ours=f"{spelled_seconds(timings.median('ours') / n_pairs)} a pair",
        theirs=f"{spelled_seconds(timings.median('theirs') / n_few)} a pair",
        note=f"theirs on {n_few:,} pairs",
    )


def beside_other_packages(
    queries: QuerySet, few: QuerySet, rouge_type: str, rounds: int
) -> list[Row]:
    """Time packages that other people take for ROUGE, and say how far they agree with it."""
    found = []
    for package, make in (("rouge", scores_of_rouge), ("rouge-rs", scores_of_rouge_rs)):
        name = f"{rouge_type} unstemmed, {package}"
        if package == "rouge-rs" and rouge_type != "rougeL":
            continue  # it has no other
        try:
            scores = make(rouge_type)
        except ModuleNotFoundError as error:
            found.append(Row.missing(name, f"{error.name} is not installed"))
            continue
        found.append(beside_package(name, scores, queries, few, rouge_type, rounds))
    return found


def beside_package(
    name: str,
    scores: Callable[[QuerySet], list[float]],
    queries: QuerySet,
    few: QuerySet,
    rouge_type: str,
    rounds: int,
) -> Row:
    timings = in_turns(
        {"ours": lambda: matches_of(queries, rouge_type, False), "theirs": lambda: scores(few)},
        rounds,
        repeats={"ours": REPEATS},
    )
    n_pairs, n_few = count_pairs(queries), count_pairs(few)
    ours = dense_scores(timings.results["ours"], queries)[:n_few]
    equal = np.mean(np.abs(np.array(timings.results["theirs"]) - ours) < 1e-6)
    return Row(
        name,
        timings.ratio("theirs", "ours") * n_pairs / n_few,
        ours=f"{spelled_seconds(timings.median('ours') / n_pairs)} a pair",
        theirs=f"{spelled_seconds(timings.median('theirs') / n_few)} a pair",
        note=f"{equal:.0%} of its scores are rouge-score's",
    )


def scores_of_rouge(rouge_type: str) -> Callable[[QuerySet], list[float]]:
    from rouge import Rouge

    metric = f"rouge-{rouge_type[-1].lower()}"
    scorer = Rouge(metrics=[metric], stats=["f"], exclusive=False)

    def scores(queries: QuerySet) -> list[float]:
        truths, documents = zip(*pairs(queries), strict=True)
        return [one[metric]["f"] for one in scorer.get_scores(list(documents), list(truths))]

    return scores


def scores_of_rouge_rs(rouge_type: str) -> Callable[[QuerySet], list[float]]:
    from rouge_rs import RougeLScorer

    scorer = RougeLScorer()

    def scores(queries: QuerySet) -> list[float]:
        return [scorer.score(truth, document).fmeasure for truth, document in pairs(queries)]

    return scores


def matches_of(queries: QuerySet, rouge_type: str, stemmer: bool) -> Matches:
    return RougeMatcher(rouge_type, tokenizer="rouge_score", stemmer=stemmer).match(queries)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="JSONL with actual and predicted texts")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of both sides (default 3)")
    parser.add_argument("--few", type=int, default=10, help="queries that the slow are timed on")
    arguments = parser.parse_args()
    queries = queries_of_file(arguments.file) if arguments.file else generated_queries()
    print(f"{machine()}\n{description(queries, str(arguments.file or 'generated text'))}\n")
    print(table(rows_of(queries, arguments.rounds, arguments.few)))


def description(queries: QuerySet, source: str) -> str:
    texts = {text for lists in (queries.actual, queries.predicted) for row in lists for text in row}
    return (
        f"{source}: {queries.n_queries:,} queries, {count_pairs(queries):,} pairs, "
        f"{len(texts):,} distinct texts, {sum(map(len, map(str.split, texts))):,} words in them"
    )


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
