"""What ``n_jobs`` saves: one process against two, and from how much work on it pays.

    python -m benchmarks.processes [--quick]

Generated English texts of 150 words, 10 retrieved for each query and 3 to be found, drawn from as
many texts as there are (13 a query: nothing is shared) or from a thirteenth of them (1 a query).

Wall times of several processes say more about what else the machine does than about them, so they
are worked out from CPU times: those of this process, and half of what the other two used beyond
starting. That is what an idle machine with two cores comes near. What starting takes is a row of
its own. The scores of both are compared bit for bit.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor

from benchmarks.measuring import Row, machine, spelled_seconds, table
from benchmarks.rouge import generated_words
from krag_eval import CoverageMatcher, FuzzyMatcher, Matcher, RougeMatcher
from krag_eval.core.documents import QuerySet
from krag_eval.core.matching.joins import Matches
from krag_eval.core.matching.parallel import processes

WHO = ("신청인은", "수급자는", "기관은", "담당자는", "학생은", "주민은", "회사는")
WHEN = ("오늘까지", "매월", "연말까지", "접수 후 닷새 안에", "회의 전에", "분기마다")
WHAT = ("지원금을", "서류를", "신청서를", "보고서를", "계획을", "증명서를", "예산을")
DID = ("제출해야 한다.", "받을 수 있다.", "확인하였다.", "바꾸지 못한다.", "돌려준다.")


def rows(quick: bool) -> list[Row]:
    n_queries = 1_000 if quick else 5_000
    own, shared = (queries_of(n_queries, n_queries * per_query) for per_query in (13, 1))
    starting = seconds_of_others(lambda: matched(RougeMatcher("rouge1"), queries_of(4, 50), 2))[1]
    found = [
        Row("n_jobs=2, starting the processes", starting / 2, unit="s", note="CPU seconds of each")
    ]
    for matcher in (CoverageMatcher(), RougeMatcher("rouge1"), FuzzyMatcher()):
        for queries, what in ((own, "13"), (shared, "1")):
            found.append(beside_one(matcher, queries, f"{what} texts a query", starting))
    return [*found, kiwi(quick, starting)]


def beside_one(matcher: Matcher, queries: QuerySet, what: str, starting: float) -> Row:
    begin = time.process_time()
    one = matched(matcher, queries, 1)
    alone = time.process_time() - begin
    results = []
    here, others = seconds_of_others(lambda: results.append(matched(matcher, queries, 2)))
    for name in ("item", "rank", "similarity"):
        if not np.array_equal(getattr(one, name), getattr(results[0], name)):
            raise SystemExit(f"{matcher.signature}: {name} differs with n_jobs")
    together = here + max(others - starting, 0.0) / 2
    return Row(
        f"n_jobs=2, {matcher.name}, {queries.n_queries:,} queries, {what}",
        alone / together,
        ours=spelled_seconds(together),
        theirs=spelled_seconds(alone),
        note=f"other: one process; {here / together:.0%} stays in this one; equal bit for bit",
    )


def seconds_of_others(job: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds of this process, and of those that it started and ended meanwhile."""
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    job()
    here = time.process_time() - begin
    get_reusable_executor().shutdown(wait=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return here, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def kiwi(quick: bool, starting: float) -> Row:
    """The same of Korean morphemes; both processes load a model of their own."""
    matcher = RougeMatcher("rouge1", tokenizer="kiwi")
    name = "n_jobs=2, rouge1 by Kiwi"
    try:
        matcher.similarity("나는 밥을 먹었다", "집을 지었다")
    except ImportError as error:
        return Row.missing(name, str(error))
    queries = korean_queries(100 if quick else 1_000)
    row = beside_one(matcher, queries, "13 Korean texts a query, by Kiwi", starting)
    return replace(row, note=f"{row.note}; both load a model, this one has")


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
    parser.add_argument("--quick", action="store_true", help="fewer queries")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
