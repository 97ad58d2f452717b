"""Time "lists of ids in, every metric out" against pytrec_eval, ranx and ir_measures, side by side.

    python benchmarks/metrics.py [--queries 20000] [--depth 100] [--rounds 5] [--truth few ten]
                                 [--ids fresh shared]

The job is the same for all: hit rate, precision, recall, reciprocal rank, average precision and
nDCG, per query and averaged over the queries, each at k = 1, 3, 5, 10 as far as the tool has it
(pytrec_eval's and ir_measures' reciprocal rank has no cutoff; krag_eval and ranx add F1, krag_eval
the mean rank and counts). "One metric" is nDCG@10 alone. What the tools say is compared first.

"From lists" begins with Python lists of ids and includes building each tool's own input (dicts of
scores from ranks; for ranx, Qrels and Run from those). "Prebuilt" leaves that out; krag_eval's
input is the lists. Ids are "fresh" (each list holds its own string objects, not hashed before, as
a file reader leaves them; made anew before every measurement) or "shared" (all lists hold the same
objects, as a retriever in memory returns them). Ground truth is "few" (1 to 5 ids, half of them
retrieved, rounded up) or "ten" (10 ids, 5 retrieved).

ranx is timed as documented, where it keeps its scores per query in the Run, and bare, where it
returns them as arrays. Times are CPU times of all threads, ranx on one and compiled before; tools
take turns, and the medians of all rounds are shown. x = theirs / krag_eval's. Growth, memory and
the floor are measured by ``benchmarks/ids.py``.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from krag_eval import Conventions, OfflineRetrievalEvaluator

CUTOFFS = (1, 3, 5, 10)
Ids = list[list[str]]
Scores = dict[str, dict[str, Any]]
Averages = Mapping[str, float]

#: Names the tools have in common, and how each spells them.
PYTREC = {
    "success": "hit_rate", "P": "macro_precision", "recall": "macro_recall", "map_cut": "map",
    "ndcg_cut": "ndcg",
}  # fmt: skip
RANX = {
    "hit_rate": "hit_rate", "precision": "macro_precision", "recall": "macro_recall", "mrr": "mrr",
    "map": "map", "ndcg": "ndcg", "f1": "macro_f1",
}  # fmt: skip


def make_lists(n_queries: int, depth: int, truth: str) -> tuple[Ids, Ids]:
    """Return what should come back and what did; the lists share their string objects."""
    random_ = random.Random(7)
    corpus = [f"doc{number}" for number in range(50_000)]
    actual, predicted = [], []
    for _ in range(n_queries):
        ranked = random_.sample(corpus, depth)
        n_truths = 10 if truth == "ten" else random_.randint(1, 5)
        retrieved = random_.sample(ranked, min(depth, (n_truths + 1) // 2))
        others = random_.sample(corpus, depth + n_truths)
        missed = [one for one in others if one not in ranked][: n_truths // 2]
        actual.append(retrieved + missed)
        predicted.append(ranked)
    return actual, predicted


def freshened(lists: Ids) -> Ids:
    """Return the same ids as new string objects that nobody has hashed yet."""
    return [[one.encode().decode() for one in ids] for ids in lists]


def qrels_of(actual: Ids) -> Scores:
    return {str(query): dict.fromkeys(ids, 1) for query, ids in enumerate(actual)}


def run_of(predicted: Ids) -> Scores:
    scores = [float(-rank) for rank in range(max(map(len, predicted)))]
    return {str(query): dict(zip(ids, scores, strict=False)) for query, ids in enumerate(predicted)}


class KragEval:
    name, package = "krag_eval", "krag-eval"

    def build(self, actual: Ids, predicted: Ids) -> tuple[Ids, Ids]:
        return actual, predicted

    def all_metrics(self, actual: Ids, predicted: Ids) -> Averages:
        return self._averages(actual, predicted, CUTOFFS, None)

    def one_metric(self, actual: Ids, predicted: Ids) -> Averages:
        return self._averages(actual, predicted, (10,), ["ndcg"])

    def _averages(self, actual: Ids, predicted: Ids, cutoffs: Any, metrics: Any) -> Averages:
        result = OfflineRetrievalEvaluator(
            actual,
            predicted,
            matcher="id",
            conventions=Conventions.trec(),
            matching_criteria="partial",
        ).evaluate(cutoffs, metrics=metrics)
        return {f"{key}@{k}": x for k in result.k for key, x in result.averages(k).items()}


class PytrecEval:
    name, package = "pytrec_eval", "pytrec-eval-terrier"

    def __init__(self) -> None:
        import pytrec_eval

        self.pytrec_eval = pytrec_eval

    def build(self, actual: Ids, predicted: Ids) -> tuple[Scores, Scores]:
        return qrels_of(actual), run_of(predicted)

    def all_metrics(self, qrels: Scores, run: Scores) -> Averages:
        cutoffs = ",".join(map(str, CUTOFFS))
        measures = {f"{name}.{cutoffs}" for name in PYTREC} | {"recip_rank"}
        names = {f"{name}_{k}": f"{key}@{k}" for name, key in PYTREC.items() for k in CUTOFFS}
        return self._averages(qrels, run, measures, names | {"recip_rank": "mrr@all"})

    def one_metric(self, qrels: Scores, run: Scores) -> Averages:
        return self._averages(qrels, run, {"ndcg_cut.10"}, {"ndcg_cut_10": "ndcg@10"})

    def _averages(
        self, qrels: Scores, run: Scores, measures: set[str], names: dict[str, str]
    ) -> Averages:
        per_query = self.pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run).values()
        aggregated = self.pytrec_eval.compute_aggregated_measure
        return {
            ours: aggregated(theirs, [values[theirs] for values in per_query])
            for theirs, ours in names.items()
        }


class Ranx:
    name, package = "ranx", "ranx"

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ranx
        self.ranx = ranx

    def build(self, actual: Ids, predicted: Ids) -> tuple[Any, Any]:
        return self.ranx.Qrels(qrels_of(actual)), self.ranx.Run(run_of(predicted))

    def all_metrics(self, qrels: Any, run: Any) -> Averages:
        return self._averages(qrels, run, [f"{name}@{k}" for name in RANX for k in CUTOFFS])

    def one_metric(self, qrels: Any, run: Any) -> Averages:
        return self._averages(qrels, run, ["ndcg@10"])

    def _averages(self, qrels: Any, run: Any, metrics: list[str]) -> Averages:
        return self._named(metrics, self.ranx.evaluate(qrels, run, metrics, threads=1))

    def _named(self, metrics: list[str], values: Any) -> Averages:
        named = values if isinstance(values, dict) else {metrics[0]: values}
        split = {metric: metric.split("@") for metric in named}
        return {
            f"{RANX[name]}@{k}": float(np.mean(named[metric]))
            for metric, (name, k) in split.items()
        }


class RanxBare(Ranx):
    name = "ranx, bare"

    def _averages(self, qrels: Any, run: Any, metrics: list[str]) -> Averages:
        mean = len(metrics) == 1  # it returns no array of one metric alone
        values = self.ranx.evaluate(
            qrels, run, metrics, return_mean=mean, save_results_in_run=False, threads=1
        )
        return self._named(metrics, values)


class IrMeasures:
    name, package = "ir_measures", "ir-measures"

    def __init__(self) -> None:
        import ir_measures

        self.ir_measures = ir_measures
        self.names = {"Success": "hit_rate", "P": "macro_precision", "R": "macro_recall",
                      "AP": "map", "nDCG": "ndcg"}  # fmt: skip

    def build(self, actual: Ids, predicted: Ids) -> tuple[Scores, Scores]:
        return qrels_of(actual), run_of(predicted)

    def all_metrics(self, qrels: Scores, run: Scores) -> Averages:
        names = {f"{name}@{k}": f"{key}@{k}" for name, key in self.names.items() for k in CUTOFFS}
        return self._averages(qrels, run, names | {"RR": "mrr@all"})

    def one_metric(self, qrels: Scores, run: Scores) -> Averages:
        return self._averages(qrels, run, {"nDCG@10": "ndcg@10"})

    def _averages(self, qrels: Scores, run: Scores, names: dict[str, str]) -> Averages:
        measures = {self.ir_measures.parse_measure(theirs): ours for theirs, ours in names.items()}
        calculated = self.ir_measures.calc(list(measures), qrels, run)
        return {measures[measure]: value for measure, value in calculated.aggregated.items()}


def check_agreement(lists: tuple[Ids, Ids], tools: list[Any]) -> None:
    """Refuse to time tools that do not compute the same."""
    krag_eval = tools[0]
    ours = dict(krag_eval.all_metrics(*lists))
    deep = krag_eval._averages(*lists, [None], ["mrr"])
    ours["mrr@all"] = deep["mrr@None"]
    for tool in tools[1:]:
        theirs = tool.all_metrics(*tool.build(*lists))
        shared = theirs.keys() & ours.keys()
        for name in shared:
            assert abs(theirs[name] - ours[name]) < 1e-9, (tool.name, name, theirs, ours)
        single = tool.one_metric(*tool.build(*lists))["ndcg@10"]
        assert abs(single - ours["ndcg@10"]) < 1e-9, (tool.name, single)
        print(f"{tool.name} agrees on {len(shared)} averages of {len(lists[0])} queries")


def cpu_time(job: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    job()
    return time.process_time() - start


def measure(lists: tuple[Ids, Ids], tools: list[Any], *, fresh: bool, rounds: int) -> list[Any]:
    """Return, per tool, the median times of building its input, all metrics and one metric."""
    times: list[list[tuple[float, float, float]]] = [[] for _ in tools]
    for _ in range(rounds):
        for tool, own in zip(tools, times, strict=True):
            own.append(_measure_once(lists, tool, fresh))
    return [[statistics.median(column) for column in zip(*own, strict=True)] for own in times]


def _measure_once(lists: tuple[Ids, Ids], tool: Any, fresh: bool) -> tuple[float, float, float]:
    seconds = []
    for job in (tool.all_metrics, tool.one_metric):
        given = tuple(map(freshened, lists)) if fresh else lists
        built: list[Any] = []
        building = cpu_time(lambda given=given, built=built: built.extend(tool.build(*given)))
        seconds.append(cpu_time(lambda job=job, built=built: job(*built)))
    return building, *seconds


def compare(options: argparse.Namespace) -> None:
    tools = [KragEval(), PytrecEval(), Ranx(), RanxBare(), IrMeasures()]
    print(f"{options.queries} queries x {options.depth} ids; CPU seconds, {options.rounds} rounds")
    print_versions(tools)
    for truth in options.truth:
        lists = make_lists(options.queries, options.depth, truth)
        check_agreement(make_lists(200, options.depth, truth), tools)  # compiles ranx as well
        check_agreement(lists, tools[:2])
        for ids in options.ids:
            print(f"\nground truth: {truth}, ids: {ids}")
            print(
                f"{'':14}{'from lists':>22}{'prebuilt':>22}{'one metric, from':>22}{'prebuilt':>22}"
            )
            rows = measure(lists, tools, fresh=ids == "fresh", rounds=options.rounds)
            ours = [rows[0][0] + rows[0][1], rows[0][1], rows[0][0] + rows[0][2], rows[0][2]]
            for tool, (building, everything, one) in zip(tools, rows, strict=True):
                cells = [building + everything, everything, building + one, one]
                pairs = zip(cells, ours, strict=True)
                texts = [f"{own:12.3f} s {own / base:6.2f} x" for own, base in pairs]
                print(f"{tool.name:14}" + "".join(texts), flush=True)


def print_versions(tools: list[Any]) -> None:
    named = dict.fromkeys([*(tool.package for tool in tools), "numpy"])
    print(", ".join(f"{package} {version(package)}" for package in named))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truth", nargs="+", default=["few", "ten"], choices=["few", "ten"])
    parser.add_argument(
        "--ids", nargs="+", default=["fresh", "shared"], choices=["fresh", "shared"]
    )
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    compare(options)


if __name__ == "__main__":
    main()
