"""Lists of ids: against three tools, by number of queries, against plain dicts, and in memory.

    python -m benchmarks.ids [--quick]

The job, the tools and the made-up lists are those of ``benchmarks/metrics.py``: fresh string
objects, one to five relevant ids per query, 100 retrieved, every metric at k = 1, 3, 5 and 10. The
floor is what nobody who matches ids can leave out: asking each retrieved id, once, whether a set of
the relevant ones has it.
"""

from __future__ import annotations

import argparse
import statistics
import tracemalloc
from typing import Any

from benchmarks.measuring import Goal, Row, in_turns, machine, spelled_seconds, table
from benchmarks.metrics import (
    CUTOFFS,
    Ids,
    IrMeasures,
    KragEval,
    PytrecEval,
    Ranx,
    RanxBare,
    cpu_time,
    freshened,
    make_lists,
    measure,
)
from krag_eval import Conventions, IdMatcher, OfflineRetrievalEvaluator
from krag_eval.core.documents import QuerySet

DEPTH = 100
#: Tool -> how many times as fast one is meant to be: from lists, and with its input prebuilt.
GOALS = {"pytrec_eval": (6, 4), "ranx": (25, 9), "ranx, bare": (25, 9), "ir_measures": (None, None)}


def rows(quick: bool) -> list[Row]:
    n_queries, rounds = (5_000, 1) if quick else (20_000, 5)
    return [
        *beside_tools(n_queries, rounds),
        *growth([5_000, 10_000] if quick else [10_000, 20_000, 40_000, 80_000], rounds),
        *beside_the_floor(n_queries, rounds),
        memory(20_000 if quick else 100_000),
    ]


def beside_tools(n_queries: int, rounds: int) -> list[Row]:
    """Compare with each tool, its own input built from the lists within its time, and without."""
    lists = make_lists(n_queries, DEPTH, "few")
    found = []
    for kind in (PytrecEval, Ranx, RanxBare, IrMeasures):
        goals = [value and Goal("at least", value) for value in GOALS[kind.name]]
        names = [
            f"{n_queries:,} × {DEPTH} ids, {how}, {kind.name}" for how in ("lists", "prebuilt")
        ]
        try:
            tool = kind()
        except ModuleNotFoundError as error:
            note = f"{error.name} is not installed"
            found += [Row.missing(*pair) for pair in zip(names, [note] * 2, goals, strict=True)]
            continue
        tool.all_metrics(*tool.build(*make_lists(100, DEPTH, "few")))  # ranx compiles
        ours, theirs = measure(lists, [KragEval(), tool], fresh=True, rounds=rounds)
        for prebuilt, (name, goal) in enumerate(zip(names, goals, strict=True)):
            their_seconds = theirs[1] + (0.0 if prebuilt else theirs[0])
            found.append(row(name, ours[1], their_seconds, their_seconds / ours[1], goal))
    return found


def growth(sizes: list[int], rounds: int) -> list[Row]:
    """Say how CPU time grows when the number of queries doubles."""
    actual, predicted = make_lists(max(sizes), DEPTH, "few")
    times: dict[int, list[float]] = {n: [] for n in sizes}
    for n in sizes * min(rounds, 3):
        given = fresh((actual[:n], predicted[:n]))
        times[n].append(cpu_time(lambda given=given: evaluated(*given).averages(10)))
    seconds = [statistics.median(own) for own in times.values()]
    goal = Goal("at most", 2.3)
    return [
        row(f"{2 * n:,} × {DEPTH} ids, {n:,} of them", now, then, now / then, goal)
        for n, now, then in zip(sizes, seconds[1:], seconds, strict=False)
    ]


def beside_the_floor(n_queries: int, rounds: int) -> list[Row]:
    """Compare matching, and everything, with looking every retrieved id up once."""
    lists = make_lists(n_queries, DEPTH, "few")
    rounds = max(rounds, 3)
    given = {name: iter([fresh(lists) for _ in range(rounds)]) for name in ("floor", "all")}
    sets = iter([QuerySet.from_lists(*fresh(lists)) for _ in range(rounds)])
    timings = in_turns(
        {
            "floor": lambda: looked_up(*next(given["floor"])),
            "match": lambda: IdMatcher().match(next(sets)),
            "all": lambda: evaluated(*next(given["all"])).averages(10),
        },
        rounds,
    )
    return [
        Row(
            f"{n_queries:,} × {DEPTH} ids, {what}, plain sets",
            timings.ratio(job, "floor"),
            unit="× the floor",
            ours=spelled_seconds(timings.median(job)),
            theirs=spelled_seconds(timings.median("floor")),
        )
        for job, what in (("match", "matching"), ("all", "all metrics"))
    ]


def fresh(lists: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
    return freshened(lists[0]), freshened(lists[1])


def looked_up(actual: Ids, predicted: Ids) -> list[list[int]]:
    """Return the ranks of what is relevant; the least that any matching of ids must do."""
    return [
        [rank for rank, one in enumerate(ranked) if one in wanted]
        for wanted, ranked in zip(map(set, actual), predicted, strict=True)
    ]


def memory(n_queries: int) -> Row:
    """Say what is allocated at the peak, beyond the inputs."""
    lists = make_lists(n_queries, DEPTH, "few")
    evaluated(*(ids[:100] for ids in lists)).averages(10)  # loads what is loaded on first use
    tracemalloc.start()
    result = evaluated(*lists)
    result.averages(10)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row(
        f"{n_queries:,} × {DEPTH} ids, memory beyond them",
        peak / 1e6,
        unit="MB",
        goal=Goal("at most", 150),
        note=f"{peak / n_queries:,.0f} bytes a query; {kept / 1e6:.0f} MB are kept by the result",
    )


def evaluated(actual: Ids, predicted: Ids) -> Any:
    conventions = Conventions.trec()
    evaluator = OfflineRetrievalEvaluator(actual, predicted, "id", conventions=conventions)
    return evaluator.evaluate(CUTOFFS)


def row(name: str, ours: float, theirs: float, figure: float, goal: Goal | None) -> Row:
    return Row(name, figure, ours=spelled_seconds(ours), theirs=spelled_seconds(theirs), goal=goal)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer queries and rounds")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()
