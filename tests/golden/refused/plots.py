"""Pictures and pages of what cannot be drawn or written."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from golden import pages
from golden.pages import of_three
from golden.plot_samples import (
    BETTER,
    WIKI,
    evaluated,
    in_chunks,
    interval_table,
    letters,
    sliced,
    swept,
    timed,
)
from krag_eval import plotting
from krag_eval.report import write_report

_TWO = {"a": evaluated([1, 2]), "b": evaluated([1, 2])}
_SEVERAL = {"dict": _TWO, "list": [*_TWO.values()], "tuple": tuple(_TWO.values())}
_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "first_rank_bars": plotting.first_rank_bars,
    "threshold_curves": plotting.threshold_curves,
    "metric_distribution": lambda given: plotting.metric_distribution(given, "ndcg@2"),
}
_OF_SYSTEMS: dict[str, Callable[[Any], Any]] = {
    "metric_bars": plotting.metric_bars,
    "cutoff_curves": plotting.cutoff_curves,
    "budget_curves": plotting.budget_curves,
    "latency_points": plotting.latency_points,
}
_OTHER = interval_table(evaluated(1), 0.1, 0.1)
_NO_RESULTS: dict[str, Any] = {
    "a list": [BETTER], "a dict of numbers": {"a": 1}, "a dict by numbers": {1: BETTER},
    "nothing": None, "none": {}, "eight": {f"system {i}": BETTER for i in range(8)},
}  # fmt: skip
_WORDS, _BOTH = in_chunks("small"), in_chunks("small", ["5w", "10w", "9c"])
_BY_LETTERS, _BY_LENGTH = (
    in_chunks("small", ["5t", "10t"], length=length) for length in (letters, str.__len__)
)

_TAGGED = pages.sliced()
_PAIR = pages.compared({"a": _TAGGED, "b": _TAGGED}, "mrr@1")
_OTHERS = {
    "labels": of_three(queries=["a", "c"]),
    "items": pages.evaluated(
        [["one"], ["two"]], [["x"], ["x"]], 1, queries=["a", "b"], matcher="coverage"
    ),
    "queries": pages.evaluated(
        [["one"], ["two", "x"], ["c"]], [["x"]] * 3, 1, queries=["a", "b", "c"], matcher="coverage"
    ),
}

CALLS: dict[str, Callable[[], Any]] = {
    **{f"{name} of a {kind}": lambda draw=draw, given=given: draw(given)
       for name, draw in _OF_ONE.items() for kind, given in _SEVERAL.items()},
    **{f"{name} of {kind}": lambda draw=draw, given=given: draw(given)
       for name, draw in _OF_SYSTEMS.items() for kind, given in _NO_RESULTS.items()},
    "bars at another k": lambda: plotting.metric_bars(evaluated([1, 3]), 2),
    "bars of no k in common": lambda: plotting.metric_bars({"a": evaluated(1), "b": evaluated(3)}),
    "bars with intervals of another k": lambda: plotting.metric_bars(evaluated(), intervals=_OTHER),
    "bars of one result with tables by name": lambda: plotting.metric_bars(
        evaluated(), intervals={"a": _OTHER}
    ),
    "bars of one result with no tables": lambda: plotting.metric_bars(evaluated(), intervals={}),
    "bars with a list of intervals": lambda: plotting.metric_bars(evaluated(), intervals=[]),
    "bars with a table that is none": lambda: plotting.metric_bars(
        evaluated(), intervals=pd.DataFrame({"low": [0.1]})
    ),
    "bars in French": lambda: plotting.metric_bars(evaluated(), language="fr"),
    "bars in a language of 1": lambda: plotting.metric_bars(evaluated(), language=1),
    "ranks among scores": lambda: plotting.cutoff_curves(evaluated(), ["mrr", "mean_rank"]),
    "an unknown metric against k": lambda: plotting.cutoff_curves(evaluated(), "ndgc"),
    "no metric against k": lambda: plotting.cutoff_curves(evaluated(), []),
    "eight metrics against k": lambda: plotting.cutoff_curves(evaluated(), ["mrr"] * 8),
    "two metrics of systems": lambda: plotting.cutoff_curves(_TWO, ["mrr", "ndcg"]),
    "a metric that systems lack": lambda: plotting.cutoff_curves(_TWO, "token_iou"),
    "a table for several": lambda: plotting.cutoff_curves(_TWO, "mrr", intervals=_OTHER),
    "intervals of 3": lambda: plotting.cutoff_curves(_TWO["a"], "mrr", intervals=3),
    "budgets against k": lambda: plotting.cutoff_curves({"a": BETTER, "b": _WORDS}),
    "intervals of no system": lambda: plotting.budget_curves(
        {"a": _WORDS}, intervals={"b": _OTHER}
    ),
    "budgets without one": lambda: plotting.budget_curves({"a": _WORDS, "b": BETTER}),
    "budgets of two units": lambda: plotting.budget_curves(_BOTH),
    "budgets of a third unit": lambda: plotting.budget_curves(_BOTH, unit="t"),
    "budgets of a unit that one lacks": lambda: plotting.budget_curves(
        {"a": _BOTH, "b": _WORDS}, unit="c"
    ),
    "budgets in no unit in common": lambda: plotting.budget_curves(
        {"a": _WORDS, "b": in_chunks("small", ["9c"])}
    ),
    "budgets in miles": lambda: plotting.budget_curves(_BOTH, unit="m"),
    "budgets by two functions": lambda: plotting.budget_curves(
        {"a": _BY_LETTERS, "b": _BY_LENGTH}
    ),
    "budgets of a metric that one lacks": lambda: plotting.budget_curves(
        {"a": _WORDS, "b": in_chunks("small", matcher="text")}, "token_iou"
    ),
    "no latency": lambda: plotting.latency_points({"a": BETTER}),
    "latency at no k in common": lambda: plotting.latency_points(
        {"a": timed(1, 2, k=1), "b": timed(1, 2, k=2)}
    ),
    **{f"latency and {metric}": lambda metric=metric: plotting.latency_points(timed(1), metric)
       for metric in ("ndgc@1", "ndcg@7", "ndcg")},
    "pareto of a result": lambda: plotting.pareto_points(BETTER),
    "pareto by price": lambda: plotting.pareto_points(swept(), "price"),
    "thresholds of a matcher without": lambda: plotting.threshold_curves(evaluated(matcher="text")),
    "ranks and scores against thresholds": lambda: plotting.threshold_curves(
        pd.DataFrame({"mean_rank@1": [1.5], "mrr@1": [0.7]}), metrics=["mrr@1", "mean_rank@1"]
    ),
    "a distribution at another k": lambda: plotting.metric_distribution(evaluated(), "ndcg@all"),
    **{f"a distribution of {metric}": lambda metric=metric: plotting.metric_distribution(
           evaluated(), metric)
       for metric in ("micro_recall@2", "rank@2", "mean_rank@2", "relevant@2")},
    "slices by a metric that is not there": lambda: plotting.slice_forest(sliced(WIKI), "map"),
    "a picture as GIF": lambda: plotting.save_plot("chart.gif", lambda ax: None),
    "a page of text": lambda: write_report("page", "report.html"),
    **{f"a page by {by}": lambda by=by: write_report(_TAGGED, "report.html", by=by)
       for by in ("nothing", ["corpus", "nothing"], 5, [5], ("",), "diagnosis")},
    **{f"a page of a comparison by {by}": lambda by=by: write_report(_PAIR, "report.html", by=by)
       for by in ("nothing", 5, [5], ("",))},
    "a page at another k": lambda: write_report(_TAGGED, "report.html", k=7),
    **{f"a page of {n} queries": lambda n=n: write_report(_TAGGED, "report.html", n_queries=n)
       for n in (-1, 1.5, True)},
    "a page in German": lambda: write_report(_TAGGED, "report.html", language="de"),
    "a page of metadata by numbers": lambda: write_report(_TAGGED, "report.html", metadata=[3]),
    "a page of a comparison of -1 queries": lambda: write_report(
        _PAIR, "report.html", n_queries=-1),
    "a page with a diagnosis that is none": lambda: write_report(
        _TAGGED, "report.html", diagnosis=["a"]),
    **{f"a page with a diagnosis of other {what}": lambda other=other: write_report(
           of_three(queries=["a", "b"]), "report.html", diagnosis=other.diagnose(k=1))
       for what, other in _OTHERS.items()},
    "a page as PDF": lambda: write_report(BETTER, "report.pdf"),
}  # fmt: skip
