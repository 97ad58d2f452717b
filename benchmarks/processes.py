"""What ``n_jobs`` saves: one process against two, and from how much work on it pays.

    python -m benchmarks.processes [--quick]

Generated English texts of 150 words, 10 retrieved for each query and 3 to be found, drawn from as
many texts as there are pairs of queries and documents (nothing to share) or from a tenth of them.
Times are wall times of matching; the processes have been started by a first run, as they have been
in a session, and starting them is a row of its own. The scores of both are compared bit for bit.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import numpy as np

from benchmarks.measuring import Row, in_turns, machine, spelled_seconds, table
from benchmarks.rouge import generated_words
from krag_eval import CoverageMatcher, FuzzyMatcher, Matcher, RougeMatcher
from krag_eval.documents import QuerySet
from krag_eval.matching.joins import Matches
from krag_eval.matching.parallel import processes

PROCESSES = 2

WHO = ("신청인은", "수급자는", "기관은", "담당자는", "학생은", "주민은", "회사는")
WHEN = ("오늘까지", "매월", "연말까지", "접수 후 닷새 안에", "회의 전에", "분기마다")
WHAT = ("지원금을", "서류를", "신청서를", "보고서를", "계획을", "증명서를", "예산을")
DID = ("제출해야 한다.", "받을 수 있다.", "확인하였다.", "바꾸지 못한다.", "돌려준다.")


def rows(quick: bool) -> list[Row]:
    n_queries, rounds = (2_000, 2) if quick else (10_000, 3)
    own, shared = (queries_of(n_queries, n_queries * per_query) for per_query in (13, 1))
    found = [start()]
    for matcher in (
        CoverageMatcher(),
        RougeMatcher("rouge1"),
        RougeMatcher("rougeL", stemmer=True),
        FuzzyMatcher(),
    ):
        for queries, what in ((own, "13"), (shared, "1")):
            found.append(beside_one(matcher, queries, f"{what} texts a query", rounds))
    return [*found, kiwi(quick)]


def start() -> Row:
    """Say what it takes to start the processes, which a first evaluation pays."""
    queries = queries_of(4, 50)
    begin = time.perf_counter()
    matched(RougeMatcher("rouge1"), queries, PROCESSES)
    return Row(
        f"n_jobs={PROCESSES}, starting the processes",
        time.perf_counter() - begin,
        unit="s",
        note="once in five minutes of use",
    )


def beside_one(matcher: Matcher, queries: QuerySet, what: str, rounds: int) -> Row:
    if rounds > 1:
        matched(matcher, queries_of(4, 50), PROCESSES)  # starts them
    timings = in_turns(
        {
            "one": lambda: matched(matcher, queries, 1),
            "more": lambda: matched(matcher, queries, PROCESSES),
        },
        rounds,
        clock=time.perf_counter,
    )
    one, more = timings.results["one"], timings.results["more"]
    for name in ("item", "rank", "similarity"):
        if not np.array_equal(getattr(one, name), getattr(more, name)):
            raise SystemExit(f"{matcher.signature}: {name} differs with n_jobs")
    return Row(
        f"n_jobs={PROCESSES}, {matcher.name}, {queries.n_queries:,} queries, {what}",
        timings.ratio("one", "more"),
        ours=spelled_seconds(timings.median("more")),
        theirs=spelled_seconds(timings.median("one")),
        note="other: one process; equal bit for bit",
    )


def kiwi(quick: bool) -> Row:
    """The same of Korean morphemes, loading a model in each process included."""
    matcher = RougeMatcher("rouge1", tokenizer="kiwi")
    name = f"n_jobs={PROCESSES}, rouge1 by Kiwi"
    try:
        matcher.similarity("나는 밥을 먹었다", "집을 지었다")
    except ImportError as error:
        return Row.missing(name, str(error))
    queries = korean_queries(100 if quick else 1_000)
    row = beside_one(matcher, queries, "13 texts a query", 1)
    return Row(**{**vars(row), "note": "models loaded by the processes, 0.5 GB each, included"})


def matched(matcher: Matcher, queries: QuerySet, n_jobs: int) -> Matches:
    with processes(n_jobs, matcher.signature):  # as the evaluator does
        return matcher.match(queries)


def queries_of(n_queries: int, n_texts: int, seed: int = 1) -> QuerySet:
    draw = random.Random(seed)
    words = generated_words(draw, 15_000)
    weights: list[float] = np.cumsum(1 / np.arange(1, len(words) + 1)).tolist()
    texts = [" ".join(draw.choices(words, cum_weights=weights, k=150)) for _ in range(n_texts)]
    return drawn(draw, texts, n_queries)


def korean_queries(n_queries: int, seed: int = 1) -> QuerySet:
    """Draw short made-up notices, each of three sentences."""
    draw = random.Random(seed)

    def sentence() -> str:
        chosen = " ".join(map(draw.choice, (WHO, WHEN, WHAT, DID)))
        return f"제{draw.randrange(10_000)}호 {chosen}"

    texts = [" ".join(sentence() for _ in range(3)) for _ in range(13 * n_queries)]
    return drawn(draw, texts, n_queries)


def drawn(draw: random.Random, texts: list[str], n_queries: int) -> QuerySet:
    chosen: list[Any] = draw.choices(texts, k=13 * n_queries)
    lists = [chosen[start : start + 13] for start in range(0, len(chosen), 13)]
    return QuerySet.from_lists([one[:3] for one in lists], [one[3:] for one in lists])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer queries and rounds")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
