"""Pictures to write down: of every kind, read from what is drawn, and of results worked by hand."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from golden.plot_samples import (
    BETTER,
    CHAT,
    LATE,
    NEWS,
    PAIR,
    TINY,
    WIKI,
    compared,
    difference,
    evaluated,
    evaluated_lists,
    in_chunks,
    interval_table,
    letters,
    said_beforehand,
    sliced,
    swept,
    timed,
)
from krag_eval import Diagnosis, History, calibrate
from krag_eval.comparison.planning import QuestionPlan
from krag_eval.history.history import HistoryRun
from krag_eval.intervals.intervals import Spread
from krag_eval.plotting import (
    budget_curves,
    calibration_curve,
    comparison_forest,
    cutoff_curves,
    diagnosis_waterfall,
    first_rank_bars,
    history_curves,
    latency_points,
    metric_bars,
    metric_distribution,
    pareto_points,
    planning_curve,
    slice_forest,
    threshold_curves,
)

NAN = math.nan
_SMALL, _LARGE = in_chunks("small"), in_chunks("large")
_TWO = {"a": evaluated([1, 2]), "b": evaluated([1, 2])}
_TABLE = interval_table(evaluated([1, 2, 3]), 0.1, 0.05)
_UNDEFINED = _TABLE.assign(low=_TABLE.low.where(_TABLE.index != "ndcg@2"))
_MEAN_RANK = replace(WIKI, metric="mean_rank@5"), replace(CHAT, metric="mean_rank@5")
_PAIRS = [("a b c d", "a b c d", True), ("a b c d", "a b c x", True),
          ("a b c d", "x y z d", False), ("a b c d", "w x y z", False)]  # fmt: skip


def _nothing_found() -> Any:
    return evaluated_lists([["a"]], [["b"]], 1)


def _diagnosed() -> Diagnosis:
    """Of four passages one is found, one ranked too low, one not retrieved, one not indexed."""
    return evaluated_lists([["a", "b", "c", "d"]], [["a", "b"]], [1, 2]).diagnose(
        ["a", "b", "c"], k=1
    )


def _cut(matcher: str) -> Diagnosis:
    """Both halves of an item are retrieved."""
    made = evaluated_lists([["a b c d e f g h i j"]], [["a b c d e", "f g h i j"]], 2,
                           matcher=matcher)  # fmt: skip
    return made.diagnose(["a b c d e", "f g h i j"], k=2)


def _history(n: int = 3) -> History:
    made, result = datetime(2026, 1, 1, 9, tzinfo=UTC), evaluated([1, 2])
    runs = [HistoryRun(str(i), result, made.replace(day=1 + i // 2), is_comparable=i != 1)
            for i in range(n)]  # fmt: skip
    history = History("runs", tuple(runs), ("macro_recall@2", "ndcg@2"))
    with warnings.catch_warnings(action="ignore"):  # two queries are few
        history.bounds(runs[0], "ndcg@2")
    return history


def _with_undefined_ndcg() -> Any:
    result = evaluated()
    ndcg = np.array([NAN, result.tables[2]["ndcg"][1]])
    tables = {2: {**result.tables[2], "ndcg": ndcg}}
    return replace(result, rows=replace(result.rows, tables=tables))


#: Name -> what draws it.
CASES: dict[str, Callable[..., object]] = {
    # Bars: precision 3/4, recall 3/5 and 7/12, F1 2/3 and 21/32, MRR 3/4, see docs/metrics.md.
    "bars": partial(metric_bars, evaluated()),
    "bars of micro averages": partial(metric_bars, evaluated(averaging_method="micro")),
    "bars of macro averages": partial(metric_bars, evaluated(averaging_method="macro")),
    "bars within a budget": partial(metric_bars, in_chunks("small", ["1000w", 5]), "1000w"),
    "bars within letters": partial(metric_bars, in_chunks("small", ["1000c"])),
    "bars of all documents": partial(metric_bars, evaluated(None)),
    "bars without skipped queries": partial(metric_bars,
        evaluated_lists([["a"], [], []], [["a"], ["b"], []], 1, no_ground_truth="skip")),
    "bars of nothing found": partial(metric_bars, _nothing_found()),
    "bars of one metric": partial(metric_bars,
        evaluated_lists([["a"]], [["a"]], 2, metrics=["ndcg"])),
    "bars above 1": partial(metric_bars,
        evaluated_lists([["a"]], [["a", "a", "a"]], 3, conventions="credit=every")),
    "bars with intervals": partial(metric_bars, evaluated(), intervals=_UNDEFINED),
    # Both queries of "good" find their only document first, one of "late" does not find it.
    "bars of two results": partial(metric_bars, {"good": BETTER, "late": LATE}, 1),
    "bars at the deepest k of both": partial(metric_bars,
        {"one": BETTER, "other": evaluated_lists([["a"], ["b"]], [["a"], ["b"]], [1, 3])},
        intervals={"one": interval_table(BETTER, 0.1, 0.1)}),
    # Against k: recall 1/6, 7/12, 3/4.
    "k": partial(cutoff_curves, evaluated([1, 2, 3])),
    "k in order": partial(cutoff_curves, evaluated([3, None, 1]), "mrr"),
    # All documents a fifth of the way from 1 to 20 beyond it, and of 1 to 100 on a log scale.
    "k up to 20": partial(cutoff_curves, evaluated([1, 2, 20, None]), "mrr"),
    "k up to 100": partial(cutoff_curves, evaluated([1, 2, 5, 100, None]), "mrr"),
    "k close together": partial(cutoff_curves, evaluated([1, 10, 11, 12, 13, 100, None]), "mrr"),
    "a single k": partial(cutoff_curves, evaluated(2), "mrr"),
    "k with intervals": partial(cutoff_curves, evaluated([1, 2, 3]), ["mrr", "ndcg"],
        intervals=_UNDEFINED),
    "ranks against k": partial(cutoff_curves, evaluated([1, 3]), "mean_rank",
        intervals=interval_table(evaluated([1, 3]), NAN, NAN)),
    "micro averages against k": partial(cutoff_curves, evaluated([1, 2], averaging_method="micro")),
    "k beside budgets": partial(cutoff_curves, in_chunks("small", ["5w", 2, "10w", 1]),
        "macro_token_recall"),
    "budgets for k": partial(cutoff_curves, in_chunks("small", ["10w", "5w"]),
        ["token_recall", "redundancy"]),
    "budgets of two units for k": partial(cutoff_curves, in_chunks("small", ["10w", "9c"]),
        "token_recall"),
    "systems against k": partial(cutoff_curves,
        {"sample": evaluated([3, 1]), "other": evaluated([2, None, 1])}, "macro_recall",
        intervals={"sample": _TABLE}),
    "ndcg of systems against k": partial(cutoff_curves, _TWO),
    "ranks of systems against k": partial(cutoff_curves, _TWO, ["mean_rank"]),
    # Medians of 200 and 600 ms, to 0.95 of the way between the two values.
    "latency": partial(latency_points, {"fast": timed(0.1, 0.3), "slow": timed(0.4, 0.8)}, "mrr@1",
        intervals={"slow": _TABLE}),
    "latency in seconds": partial(latency_points, timed(1.0, 3.0), "macro_recall@2"),
    "latency at the deepest k of both": partial(latency_points,
        {"a": timed(1, 2, k=[1, 2, 3]), "b": timed(1, 2, k=[2, 1, None])}),
    "latency of some": partial(latency_points,
        {"asked": timed(1, 2), "read": evaluated([1, 2]), "failed": timed(NAN)}),
    "pareto": lambda ax: pareto_points(swept(), ax=ax),
    # Small chunks hold a half and nothing in five words, all and a half in ten; a large chunk does
    # not fit into five words and holds a whole item.
    "budgets": partial(budget_curves, {"small": _SMALL, "large": _LARGE}),
    "budgets of each": partial(budget_curves,
        {"small": _SMALL, "large": in_chunks("large", ["20w", 5])}),
    "budgets of one": partial(budget_curves, _SMALL, intervals=interval_table(_SMALL, 0.1, 0.05)),
    "budgets with intervals of one": partial(budget_curves, {"small": _SMALL, "large": _LARGE},
        intervals={"large": interval_table(_LARGE, 0.1, 0.1)}),
    "budgets without words": partial(budget_curves, in_chunks("large", matcher="text")),
    "micro averages against budgets": partial(budget_curves,
        in_chunks("large", matcher="text", averaging_method="micro")),
    "what all have against budgets": partial(budget_curves,
        {"a": _SMALL, "b": in_chunks("small", matcher="text")}),
    "redundancy against budgets": partial(budget_curves,
        {"small": _SMALL, "large": in_chunks("large", ["5w"])}, "redundancy"),
    "ranks against budgets": partial(budget_curves, _SMALL, "mean_rank"),
    "budgets by a function": partial(budget_curves,
        in_chunks("small", ["5t", "10t"], length=letters)),
    "budgets in letters": partial(budget_curves, in_chunks("small", ["5w", "10w", "9c"]), unit="c"),
    "budgets of the unit that all have": partial(budget_curves,
        {"both": in_chunks("small", ["5w", "10w", "9c"]), "words": _SMALL}),
    "large budgets": partial(budget_curves, in_chunks("small", ["900w", "1000w", "4000w"])),
    "budgets of different sizes": partial(budget_curves,
        {"two": _SMALL, "one": evaluated_lists([["a b"]], [["a b"]], "5w", matcher="coverage")}),
    "budgets of seven": partial(budget_curves, {f"system {i}": _SMALL for i in range(7)}),
    # One item is found with similarity 0.9, one with 0.5; the threshold is 0.6.
    "thresholds": partial(threshold_curves,
        said_beforehand().metrics_at_thresholds("macro_recall@1", [0.2, 0.6, 1.0])),
    "a column of thresholds": partial(threshold_curves,
        said_beforehand().metrics_at_thresholds(["mrr@1", "ndcg@1"], [0.2, 0.6])["ndcg@1"]),
    "thresholds of a result": partial(threshold_curves, said_beforehand()),
    "a threshold between": partial(threshold_curves,
        said_beforehand().metrics_at_thresholds("mrr@1", [0.2, 0.6]), 0.3),
    "chosen against thresholds": partial(threshold_curves, said_beforehand(),
        metrics="macro_precision@7"),
    "everything against thresholds": partial(threshold_curves,
        said_beforehand().metrics_at_thresholds()),
    "ranks left out of thresholds": partial(threshold_curves,
        pd.DataFrame({"mean_rank@1": [1.5, 2.0], "mrr@1": [0.7, 0.5]}, index=[0.1, 0.9])),
    "ranks against thresholds": partial(threshold_curves,
        pd.Series([1.5, 2.0], [0.1, 0.9], name="mean_rank@1")),
    "a table of one's own": partial(threshold_curves,
        pd.DataFrame({"mine": [0.7, 0.5]}, index=[0.1, 0.9])),
    "budgets against thresholds": partial(threshold_curves, _SMALL,
        metrics=["redundancy@5w", "mrr@5w", "mrr@10w"]),
    "the largest budget against thresholds": partial(threshold_curves, _SMALL),
    "calibration": lambda ax: calibration_curve(calibrate("rouge1",
        [*_PAIRS * 3, ("a b c d", "w x y d", True)]), ax),
    "calibration of what separates": lambda ax: calibration_curve(calibrate("rouge1", _PAIRS), ax),
    "plan": partial(planning_curve,
        QuestionPlan("macro_recall@2", 0.1, 0.8, 0.05, Spread(0.5, 100, 0.05))),
    "history": lambda ax: history_curves(_history(), ax),
    "a long history": lambda ax: history_curves(_history(24), ax),
    "history of several k": lambda ax: history_curves(replace(_history(),
        metrics=("mrr@1", "mrr@2")), ax),
    "waterfall": lambda ax: diagnosis_waterfall(_diagnosed(), ax),
    "waterfall of pieces": lambda ax: diagnosis_waterfall(_cut("coverage"), ax),
    "waterfall of a union": lambda ax: diagnosis_waterfall(_cut("coverage(union=true)"), ax),
    "waterfall of nothing": partial(diagnosis_waterfall,
        Diagnosis((), 1, None, None, None, 0.5, "text", union=False, knows_words=False)),
    # Recall 0, 1/2, 2/3, 1, 1.
    "distribution": partial(metric_distribution,
        evaluated_lists([["a"], ["a", "b"], ["a", "b", "c"], ["a"], ["b"]],
        [["x"], ["a"], ["a", "b"], ["a"], ["b"]], 3), "recall@3"),
    "distribution by the name of its mean": partial(metric_distribution, evaluated(), "mrr@2"),
    "distribution by its own name": partial(metric_distribution, evaluated(), "reciprocal_rank@2"),
    "distribution without a mean": partial(metric_distribution, evaluated(averaging_method="micro"),
        "recall@2"),
    "distribution above 1": partial(metric_distribution,
        evaluated_lists([["a"]], [["a", "a"]], 2, conventions="credit=every"), "map@2"),
    "distribution without skipped queries": partial(metric_distribution,
        evaluated_lists([["a"], []], [["a"], ["b"]], 1, no_ground_truth="skip"), "ndcg@1"),
    "distribution within a budget": partial(metric_distribution, in_chunks("small", ["5w", 5]),
        "redundancy@5w"),
    "distribution with undefined values": partial(metric_distribution, _with_undefined_ndcg(),
        "ndcg@2"),
    # Ranks 1, 2, 3 and 2; one item is never found.
    "first ranks": partial(first_rank_bars, evaluated()),
    "deep first ranks": partial(first_rank_bars,
        evaluated_lists([["d1", "d30", "d1001"]], [[f"d{i}" for i in range(1, 1002)]], None)),
    "first ranks of nothing": partial(first_rank_bars, _nothing_found()),
    "forest": partial(comparison_forest, compared(difference("ndcg@10"),
        difference("mrr@10", -0.2, (-0.3, -0.0001), p=0.0002),
        difference("map@10", 0.1, (-0.1, 0.2), p=0.4),
        difference("recall@10", 0.0, (0.0, 0.0), p=NAN),
        difference("f1@10", NAN, (NAN, NAN), p=NAN))),
    "forest far from 0": partial(comparison_forest,
        compared(difference(value=0.5, interval=(0.45, 0.55)))),
    "forest of three scales": partial(comparison_forest,
        compared(difference("mean_rank@5", 0.5, (0.2, 0.8)), difference("redundancy@5"),
        difference("ndcg@5"))),
    "forest of pairs": partial(comparison_forest, compared(*(difference(metric,
        pair=pair) for pair in [("a", "b"), ("a", "c"), ("b", "c")] for metric in ("ndcg@5",
        "mrr@5")))),
    "forest of long names": partial(comparison_forest,
        compared(difference(pair=("$x_1$ " + "long " * 50 + "\n\x00", "b")))),
    "slices": partial(slice_forest, sliced(WIKI, CHAT, NEWS, TINY)),
    "slices where lower is better": partial(slice_forest,
        sliced(*_MEAN_RANK, lower=("mean_rank@5",))),
    "slices by another metric": partial(slice_forest, sliced(WIKI, replace(CHAT, metric="map@5")),
        "map@5"),
    "slices of a comparison": partial(slice_forest, PAIR),
    "slices of three systems": partial(slice_forest,
        replace(PAIR, rows=(PAIR.rows[0], replace(PAIR.rows[0], b="hybrid")))),
    **{
        f"slices by {tag}": partial(
            slice_forest, replace(sliced(replace(WIKI, slice=name), TINY), tag=tag, about="…")
        )
        for tag, name in {
            "items": "1",
            "question_length": "3",
            "golden_length": "3",
            "language": "Korean",
            "diagnosis": "cut_apart",
        }.items()
    },
}  # fmt: skip


def told(case: str) -> str:
    """Draw a case, and return what is on its axes, a line for each thing."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    with warnings.catch_warnings(action="ignore"):  # there may be no font for Hangul
        assert CASES[case](ax=ax) is ax
    return "\n".join(line for part in figure.axes for line in _on(part))


def _on(ax: Axes) -> Iterator[str]:
    yield f"title {ax.get_title(loc='left')!r}"
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        span = _numbers(axis.get_view_interval())
        yield f"{name} {axis.get_label_text()!r} {axis.get_scale()} from {span}"
        if isinstance(axis.get_major_locator(), FixedLocator):
            ticks = dict(zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True))
            named = [f"{place:.4g}={one.get_text()!r}" for place, one in ticks.items()]
            bold = [one.get_text() for one in ticks.values() if one.get_weight() == "bold"]
            yield f"{name} ticks {' '.join(named)}" + (f", bold {bold}" if bold else "")
        if minor := list(axis.get_ticklocs(minor=True)):
            yield f"{name} minor ticks {_numbers(minor)}"
    yield from _bars(ax)
    yield from _lines(ax)
    for text in filter(lambda one: one.get_text(), ax.texts):
        place = _numbers(getattr(text, "xy", text.get_position()))
        yield f"text {text.get_text()!r} {to_hex(text.get_color())} at {place}"
    if (legend := ax.get_legend()) is not None:
        yield f"legend {[one.get_text() for one in legend.get_texts()]}"


def _bars(ax: Axes) -> Iterator[str]:
    for bars in [one for one in ax.containers if hasattr(one, "patches")]:
        yield f"bars {_label(bars)}"
        for bar in bars:
            place = _numbers((bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()))
            yield f"bar {to_hex(bar.get_facecolor(), keep_alpha=True)} {place}"
        if bars.errorbar is not None:
            reaches = bars.errorbar.lines[2][0].get_segments()
            yield f"errors {'; '.join(_numbers(one[:, 0]) for one in reaches)}"
    for patch in [one for one in ax.patches if not any(one in bars for bars in ax.containers)]:
        (left, _), (right, _) = ax.transData.inverted().transform(patch.get_extents())
        span = _numbers((left, right))
        yield f"patch {_label(patch)} {to_hex(patch.get_facecolor())} {span}"


def _lines(ax: Axes) -> Iterator[str]:
    for line in ax.lines:
        fill = to_hex(line.get_markerfacecolor()) == to_hex(line.get_color())
        look = f"{line.get_linestyle()} {line.get_marker()}{'' if fill else ' hollow'}"
        points = " ".join(f"({_numbers(point)})" for point in line.get_xydata())
        yield f"line {_label(line)} {to_hex(line.get_color())} {look} {points}"
    for area in ax.collections:
        corners = sorted({_numbers(one) for path in area.get_paths() for one in path.vertices})
        colours = [*area.get_facecolor(), *area.get_edgecolor()]
        yield f"area {to_hex(colours[0])} {'; '.join(corners)}"


def _label(one: Any) -> str:
    name = str(one.get_label())
    return "" if name.startswith("_") else repr(name)  # made up by matplotlib


def _numbers(values: Any) -> str:
    return ", ".join(f"{float(one) + 0.0:.4g}" for one in values)
