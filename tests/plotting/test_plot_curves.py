"""Curves against the cutoff and the threshold, read from the artists."""

import math
from itertools import pairwise

import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from krag_eval import EvaluationResult, Matcher, OfflineRetrievalEvaluator
from krag_eval._errors import InvalidInput
from krag_eval.plotting import cutoff_curves, threshold_curves

from .plot_samples import evaluated, interval_table, no_complaint_about_fonts


def lines(ax: Axes) -> dict[str, list[float]]:
    """Return the values of each named line."""
    return {
        line.get_label(): list(line.get_ydata())
        for line in ax.lines
        if not line.get_label().startswith("_")
    }


class TestCutoffCurves:
    """Metrics against k."""

    def test_one_line_per_metric(self) -> None:
        """The worked example at 1, 2 and 3."""
        drawn = lines(cutoff_curves(evaluated([1, 2, 3])))
        assert set(drawn) == {
            "Hit rate", "Macro recall", "Macro precision", "MRR", "MAP", "nDCG"
        }  # fmt: skip
        assert drawn["Macro recall"] == pytest.approx([1 / 6, 7 / 12, 0.75])
        assert drawn["MRR"] == pytest.approx([0.5, 0.75, 0.75])
        assert drawn["Hit rate"] == [0.0, 0.0, 0.5]

    def test_cutoffs_stand_in_order(self) -> None:
        """Whatever order they were asked for in, and all documents last."""
        ax = cutoff_curves(evaluated([3, None, 1]), "mrr")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "3", "all"]
        assert lines(ax)["MRR"] == [0.5, 0.75, 0.75]

    def test_lines_are_named_at_their_ends(self) -> None:
        """Name and last value, to the right of the axes, none upon another."""
        ax = cutoff_curves(evaluated([1, 2, 3]))
        told = [text.get_text() for text in ax.texts]
        assert "nDCG 0.69" in told
        assert "Hit rate 0.50" in told
        ax.figure.canvas.draw()
        # In data units of a line of text, the places are far enough apart not to overlap.
        extents = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
        edge = ax.get_window_extent().x1
        assert all(box.x1 > edge for box in extents)
        heights = sorted(text.xyann[1] for text in ax.texts)
        assert all(above - below > 0.05 for below, above in pairwise(heights))

    def test_axis_runs_from_0_to_1(self) -> None:
        """Scores are seen against what they could be."""
        low, high = cutoff_curves(evaluated([1, 2, 3])).get_ylim()
        assert low == 0.0
        assert 1.0 <= high < 1.1

    def test_a_single_cutoff(self) -> None:
        """Points instead of lines."""
        assert lines(cutoff_curves(evaluated(2), "mrr")) == {"MRR": [0.75]}

    def test_intervals_are_bands(self) -> None:
        """Around the line, at every cutoff."""
        result = evaluated([1, 3])
        ax = cutoff_curves(result, "mrr", intervals=interval_table(result, 0.1, 0.05))
        (band,) = ax.collections
        heights = {round(float(y), 6) for _, y in band.get_paths()[0].vertices}
        assert heights == {0.4, 0.55, 0.65, 0.8}

    def test_undefined_intervals_are_left_out(self) -> None:
        """Nothing found at all gives no interval of the mean rank."""
        result = evaluated([1, 3])
        table = interval_table(result, math.nan, math.nan)
        assert not cutoff_curves(result, "mean_rank", intervals=table).collections

    def test_ranks_have_an_axis_of_their_own(self) -> None:
        """Mean rank is no score: its axis begins at 1 and says what is better."""
        ax = cutoff_curves(evaluated([1, 3]), "mean_rank")
        assert ax.get_ylabel() == "Mean rank (lower is better)"
        assert ax.get_ylim()[0] == 1.0

    def test_ranks_and_scores_do_not_mix(self) -> None:
        """They have no unit in common."""
        with pytest.raises(ValueError, match=r"'mean_rank' is a rank and shares no axis"):
            cutoff_curves(evaluated(), ["mrr", "mean_rank"])
        assert not pyplot.get_fignums()

    def test_a_metric_that_is_not_there(self) -> None:
        """The refusal lists what is."""
        with pytest.raises(ValueError, match=r"'ndcg'.*got 'ndgc'"):
            cutoff_curves(evaluated(), "ndgc")

    @pytest.mark.parametrize("metrics", [[], ["mrr"] * 8])
    def test_too_few_and_too_many(self, metrics: list[str]) -> None:
        """No more lines than can be told apart."""
        with pytest.raises(InvalidInput) as info:
            cutoff_curves(evaluated(), metrics)
        assert info.value.argument == "metrics"
        assert f"got {len(metrics)}" in info.value.problem

    def test_only_micro_averages(self) -> None:
        """What the result has is drawn."""
        drawn = lines(cutoff_curves(evaluated(averaging_method="micro")))
        assert {"Micro recall", "Micro precision", "MRR"} <= set(drawn)

    def test_lines_differ_in_more_than_colour(self) -> None:
        """Marker or dashes tell any two apart, also in grey."""
        ax = cutoff_curves(evaluated([1, 2, 3]))
        looks = {(line.get_marker(), line.get_linestyle()) for line in ax.lines}
        assert len(looks) == len(ax.lines)

    def test_in_korean(self) -> None:
        """Names and axes."""
        with no_complaint_about_fonts():
            ax = cutoff_curves(evaluated([1, None]), "macro_recall", language="ko")
        assert (list(lines(ax)), ax.get_xlabel()) == (["재현율(macro)"], "컷오프 k")
        assert ax.get_xticklabels()[1].get_text() == "전체"


class SaidBeforehand(Matcher):
    """The similarities of two pairs, written down."""

    name = "beforehand"
    threshold = 0.6

    def similarity(self, actual: object, predicted: object) -> float:
        """Look it up."""
        pair = actual.page_content + predicted.page_content  # type: ignore[attr-defined]
        return {"aA": 0.9, "bB": 0.5}.get(pair, 0.0)


def swept() -> EvaluationResult:
    """Two queries with one item each, found with similarity 0.9 and 0.5; the threshold is 0.6."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["A"], ["B"]], matcher=SaidBeforehand())
    return evaluator.evaluate(k=1)


class TestThresholdCurves:
    """Metrics against the threshold."""

    def test_of_a_table(self) -> None:
        """What was computed is drawn."""
        table = swept().metrics_at_thresholds("macro_recall@1", [0.2, 0.6, 1.0])
        ax = threshold_curves(table)
        assert lines(ax) == {"macro_recall@1": [1.0, 0.5, 0.0]}
        assert list(ax.lines[0].get_xdata()) == [0.2, 0.6, 1.0]

    def test_of_a_column(self) -> None:
        """A single average need not be a table."""
        column = swept().metrics_at_thresholds(["mrr@1", "ndcg@1"], [0.2, 0.6])["ndcg@1"]
        assert lines(threshold_curves(column)) == {"ndcg@1": [1.0, 0.5]}

    def test_of_a_result(self) -> None:
        """Its own threshold is marked, and the legend has the values there."""
        ax = threshold_curves(swept())
        drawn = lines(ax)
        assert "macro_recall@1 (0.50)" in drawn
        assert "Threshold in use: 0.6" in drawn
        mark = next(line for line in ax.lines if line.get_label().startswith("Threshold"))
        assert list(mark.get_xdata()) == [0.6, 0.6]
        points = [line for line in ax.lines if line.get_label().startswith("_")]
        assert {(*line.get_xdata(), *line.get_ydata()) for line in points} == {(0.6, 0.5)}

    def test_a_mark_between_the_rows(self) -> None:
        """A threshold that was not computed is marked, without a value."""
        table = swept().metrics_at_thresholds("mrr@1", [0.2, 0.6])
        assert list(lines(threshold_curves(table, 0.3))) == ["mrr@1", "Threshold in use: 0.3"]

    def test_chosen_metrics_of_a_result(self) -> None:
        """Averages with their cutoffs, evaluated or not."""
        drawn = lines(threshold_curves(swept(), metrics="macro_precision@7"))
        assert "macro_precision@7 (0.50)" in drawn

    def test_ranks_are_left_out_unless_alone(self) -> None:
        """A table with everything is drawn without the mean rank."""
        table = pd.DataFrame({"mean_rank@1": [1.5, 2.0], "mrr@1": [0.7, 0.5]}, index=[0.1, 0.9])
        assert list(lines(threshold_curves(table))) == ["mrr@1"]
        ax = threshold_curves(table["mean_rank@1"])
        assert ax.get_ylabel() == "Mean rank (lower is better)"
        with pytest.raises(ValueError, match=r"'mean_rank@1' is a rank and shares no axis"):
            threshold_curves(table, metrics=["mrr@1", "mean_rank@1"])

    def test_no_more_lines_than_can_be_told_apart(self) -> None:
        """Of a table with everything, the first seven columns."""
        assert len(lines(threshold_curves(swept().metrics_at_thresholds()))) == 7

    def test_a_matcher_without_threshold(self) -> None:
        """There is nothing to draw."""
        with pytest.raises(ValueError, match="matcher of this result decides without one"):
            threshold_curves(evaluated(matcher="text"))
        assert not pyplot.get_fignums()

    def test_the_legend_covers_nothing(self) -> None:
        """It lies above the axes and below the title, however many lines there are."""
        ax = threshold_curves(swept())
        ax.figure.canvas.draw()
        legend = ax.get_legend().get_window_extent()
        assert legend.y0 >= ax.get_window_extent().y1
        assert legend.y1 <= ax._left_title.get_window_extent().y0

    def test_draws_on_the_axes_given(self) -> None:
        """No figure of its own when there is one to draw on."""
        _, (left, right) = pyplot.subplots(1, 2)
        assert threshold_curves(swept(), ax=left) is left
        assert cutoff_curves(evaluated(), ax=right) is right
        assert len(pyplot.get_fignums()) == 1
