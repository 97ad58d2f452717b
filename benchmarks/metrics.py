"""Time all metrics at several cutoffs against pytrec_eval, on the same ids, in one process.

    python benchmarks/metrics.py [--queries 40000] [--depth 100] [--runs 5]

Prints medians of CPU time and the ratio pytrec_eval / krag_eval, twice: from pytrec_eval's own
dicts (krag_eval's lists are made from them within its time), and with each tool's input prebuilt.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import chain

import numpy as np
import pytrec_eval

from krag_eval import Conventions, OfflineRetrievalEvaluator

CUTOFFS = (1, 3, 5, 10, 100)
MEASURES = {
    f"{name}.{','.join(map(str, CUTOFFS))}"
    for name in ("success", "P", "recall", "map_cut", "ndcg_cut")
} | {"recip_rank", "set_F"}

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]
Ids = tuple[str, ...]


def make_input(n_queries: int, depth: int) -> tuple[Qrels, Run]:
    """Make ranked lists that find about half of ten relevant documents each."""
    random_ = random.Random(7)
    corpus = [f"doc{number}" for number in range(50_000)]
    qrels, run = {}, {}
    for query in range(n_queries):
        ranked = random_.sample(corpus, depth)
        # Equal, never identical: real ids come from two different files.
        relevant = random_.sample(ranked, 5) + corpus[query : query + 5]
        qrels[f"q{query}"] = {"".join(list(document)): 1 for document in relevant}
        run[f"q{query}"] = {d: float(depth - rank) for rank, d in enumerate(ranked)}
    return qrels, run


def by_pytrec_eval(qrels: Qrels, run: Run) -> float:
    results = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(run)
    return statistics.fmean(query["ndcg_cut_10"] for query in results.values())


def lists_of(qrels: Qrels, run: Run) -> tuple[list[Ids], list[Ids]]:
    """Return what should come back and what did, ranked by score."""
    n_scores = sum(map(len, run.values()))
    scores = np.fromiter(chain.from_iterable(map(dict.values, run.values())), float, n_scores)
    rises = np.flatnonzero(np.diff(scores) > 0) + 1
    starts = np.cumsum([0, *map(len, run.values())])
    if np.isin(rises, starts).all():  # ranked as they are, like most runs
        ranked = [*map(tuple, run.values())]
    else:
        ranked = [tuple(sorted(r, key=r.__getitem__, reverse=True)) for r in run.values()]
    return [tuple(qrels[query]) for query in run], ranked


def by_krag_eval(actual: list[Ids], predicted: list[Ids]) -> float:
    evaluator = OfflineRetrievalEvaluator(
        actual, predicted, matcher="id", conventions=Conventions.trec()
    )
    return evaluator.evaluate(k=CUTOFFS).averages(10)["ndcg"]


def median_time(job: Callable[[], float], runs: int) -> tuple[float, float]:
    times = []
    for _ in range(runs):
        start = time.process_time()
        value = job()
        times.append(time.process_time() - start)
    return statistics.median(times), value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=40_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    qrels, run = make_input(options.queries, options.depth)
    lists = lists_of(qrels, run)
    theirs, their_value = median_time(lambda: by_pytrec_eval(qrels, run), options.runs)
    from_dicts, _ = median_time(lambda: by_krag_eval(*lists_of(qrels, run)), options.runs)
    prebuilt, our_value = median_time(lambda: by_krag_eval(*lists), options.runs)
    assert abs(our_value - their_value) < 1e-9, (our_value, their_value)
    dicts, lists_only = theirs / from_dicts, theirs / prebuilt
    print(
        f"{options.queries} queries x {options.depth} ids, all metrics at k = {CUTOFFS}; "
        f"median CPU time of {options.runs} runs\n"
        f"pytrec_eval-terrier {version('pytrec-eval-terrier')}, krag-eval {version('krag-eval')}, "
        f"numpy {version('numpy')}; both give ndcg@10 = {our_value:.6f}\n\n"
        f"pytrec_eval, dicts prebuilt        {theirs:7.3f} s\n"
        f"krag_eval, from the same dicts     {from_dicts:7.3f} s   ratio {dicts:5.2f}\n"
        f"krag_eval, lists prebuilt          {prebuilt:7.3f} s   ratio {lists_only:5.2f}"
    )


if __name__ == "__main__":
    main()
