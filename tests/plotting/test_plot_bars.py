"""Bars, read from the artists; people look at the plots themselves."""

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.plotting import metric_bars

from .plot_samples import (
    ACTUAL,
    PREDICTED,
    evaluated,
    in_chunks,
    interval_table,
)

MICRO, MACRO = "Micro (pooled)", "Macro (mean)"


def bars(ax: Axes) -> dict[str, dict[str, float]]:
    """Return the bars of each legend entry, by the metric they stand beside."""
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    return {
        container.get_label(): {
            names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in container
        }
        for container in ax.containers
    }


def value_labels(ax: Axes) -> list[str]:
    """Return the numbers written beside the bars."""
    return [text.get_text() for text in ax.texts]


class TestMetricBars:
    """Every metric at one cutoff."""

    def test_every_metric_has_its_bar(self) -> None:
        """Widths are the values; precision, recall and F1 have a micro and a macro bar."""
        drawn = bars(metric_bars(evaluated()))
        assert drawn[MICRO] == pytest.approx({"Precision": 0.75, "Recall": 0.6, "F1": 2 / 3})
        assert drawn[MACRO] == pytest.approx(
            {
                "Hit rate (all found)": 0.0,
                "Success (any found)": 1.0,
                "Precision": 0.75,
                "Recall": (2 / 3 + 1 / 2) / 2,
                "F1": 0.65625,
                "MRR": 0.75,
                "MAP": 0.4583333,
                "nDCG": 0.6934264,
            }
        )

    def test_every_bar_says_its_value(self) -> None:
        """Two digits beside each bar, zeros too."""
        assert value_labels(metric_bars(evaluated())) == [
            *("0.75", "0.60", "0.67"),
            *("0.00", "1.00", "0.75", "0.58", "0.66", "0.75", "0.46", "0.69"),
        ]

    def test_micro_and_macro_stand_side_by_side(self) -> None:
        """The bars of one metric do not overlap, and micro is above macro."""
        micro, macro = metric_bars(evaluated()).containers
        for upper, lower in zip(list(micro), list(macro)[2:5], strict=True):
            assert upper.get_y() + upper.get_height() <= lower.get_y()

    @pytest.mark.parametrize(("averaging", "label"), [("micro", MICRO), ("macro", MACRO)])
    def test_one_average_only(self, averaging: str, label: str) -> None:
        """With one averaging method, precision, recall and F1 have one bar each."""
        drawn = bars(metric_bars(evaluated(averaging_method=averaging)))
        assert {"Precision", "Recall", "F1"} <= set(drawn[label])
        assert sum(map(len, drawn.values())) == 8

    def test_title_names_cutoff_and_queries(self) -> None:
        """The title says what is shown, of how much."""
        title = metric_bars(evaluated()).get_title(loc="left")
        assert title == "Retrieval metrics at k = 2 (2 queries)"

    def test_at_a_budget(self) -> None:
        """The title says how much fits, and a label where lower is better."""
        ax = metric_bars(in_chunks("small", ["1000w", 5]), "1000w")
        assert ax.get_title(loc="left") == "Retrieval metrics within 1,000 words (2 queries)"
        assert "Redundancy\n(lower is better)" in [one.get_text() for one in ax.get_yticklabels()]
        korean = metric_bars(in_chunks("small", ["1000c"]), language="ko")
        assert korean.get_title(loc="left") == "검색 지표, 1,000자 이내 (질문 2개)"

    def test_title_without_a_cutoff(self) -> None:
        """All retrieved documents are not called a cutoff of None."""
        title = metric_bars(evaluated(k=None)).get_title(loc="left")
        assert title == "Retrieval metrics over all retrieved documents (2 queries)"

    def test_a_result_draws_itself(self) -> None:
        """At its deepest cutoff, unless told."""
        result = evaluated(k=[1, 2])
        titles = [result.plot(k).get_title(loc="left") for k in (None, 1)]
        assert ["k = 2" in title for title in titles] == [True, False]

    def test_title_counts_skipped_queries(self) -> None:
        """Queries left out of the averages are counted apart."""
        evaluator = OfflineRetrievalEvaluator([["a"], []], [["a"], ["b"]], no_ground_truth="skip")
        title = evaluator.visualize_results(k=1).get_title(loc="left")
        assert title == "Retrieval metrics at k = 1 (1 query, 1 skipped)"

    def test_ranks_are_told_in_the_caption(self) -> None:
        """The mean rank, (1 + 2) / 2, is no bar on an axis from 0 to 1."""
        ax = metric_bars(evaluated())
        assert ax.get_xlabel() == "First relevant document: mean rank 1.50, found rate 1.00"

    def test_nothing_found(self) -> None:
        """When nothing was found, zeros are shown and the caption says so."""
        with pytest.warns(KragEvalWarning, match="matched nothing"):
            ax = OfflineRetrievalEvaluator([["a"]], [["b"]]).visualize_results(k=1)
        assert value_labels(ax) == ["0.00"] * 10  # one item, so that success is the hit rate
        assert ax.get_xlabel() == "No query found a relevant document"

    def test_results_without_ranks_have_no_caption(self) -> None:
        """A chosen metric is drawn alone."""
        result = OfflineRetrievalEvaluator(ACTUAL, PREDICTED).evaluate(k=2, metrics=["ndcg"])
        ax = metric_bars(result)
        assert (list(bars(ax)[MACRO]), ax.get_xlabel()) == (["nDCG"], "")

    def test_axis_runs_from_0_to_1_with_room_for_labels(self) -> None:
        """A bar of 1 leaves room for its label."""
        low, high = metric_bars(evaluated()).get_xlim()
        assert low == 0.0
        assert 1.05 < high < 1.2

    def test_axis_grows_with_scores_above_1(self) -> None:
        """With every matching document credited, one item retrieved three times has MAP 3."""
        evaluator = OfflineRetrievalEvaluator(
            [["a"]], [["a", "a", "a"]], conventions="credit=every"
        )
        ax = evaluator.visualize_results(k=3)
        assert bars(ax)[MACRO]["MAP"] == pytest.approx(3.0)
        assert ax.get_xlim()[1] > 3.0

    def test_undefined_values_are_marked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A metric that is NaN has a label, and no bar."""
        result = evaluated()
        undefined = result.averages(2) | {"ndcg": float("nan")}
        monkeypatch.setattr(EvaluationResult, "averages", lambda self, k: undefined)
        ax = metric_bars(result)
        assert value_labels(ax)[-1] == "n/a"
        assert bars(ax)[MACRO]["nDCG"] == 0.0

    def test_intervals_are_error_bars(self) -> None:
        """Each bar has its interval, and the label stands beyond it."""
        result = evaluated()
        intervals = interval_table(result, 0.1, 0.05)
        ax = metric_bars(result, intervals=intervals)
        macro = next(one for one in ax.containers if one.get_label() == MACRO)
        (bars_of_errors,) = macro.errorbar.lines[2]
        drawn = [segment[:, 0] for segment in bars_of_errors.get_segments()]
        assert drawn[2] == pytest.approx([0.65, 0.8])  # precision, 0.75
        ax.figure.canvas.draw()
        labels = {text.get_text(): text for text in ax.texts}
        low_edge = labels["0.69"].get_window_extent().x0
        assert low_edge > ax.transData.transform((0.6934 + 0.05, 0))[0]

    def test_undefined_intervals_have_no_bar(self) -> None:
        """NaN is no interval; the others are still drawn."""
        result = evaluated()
        intervals = interval_table(result, 0.1, 0.05)
        intervals.loc["ndcg@2", ["low", "high"]] = float("nan")
        macro = next(
            one
            for one in metric_bars(result, intervals=intervals).containers
            if one.get_label() == MACRO
        )
        (bars_of_errors,) = macro.errorbar.lines[2]
        ends = [segment[:, 0] for segment in bars_of_errors.get_segments()]
        assert ends[-1] == pytest.approx([0.6934264, 0.6934264])

    def test_intervals_of_something_else(self) -> None:
        """The refusal says where the table comes from."""
        other = interval_table(evaluated(k=1), 0.1, 0.1)
        with pytest.raises(InvalidInput, match=r"intervals have no row 'hit_rate@2'; compute them"):
            metric_bars(evaluated(), intervals=other)
        with pytest.raises(InvalidType, match=r"intervals must be what .* got list"):
            metric_bars(evaluated(), intervals=[])  # type: ignore[arg-type]
        assert not pyplot.get_fignums()

    def test_rejections_are_told_in_the_caption(self) -> None:
        """Of two queries without ground truth, one got nothing."""
        evaluator = OfflineRetrievalEvaluator(
            [["a"], [], []], [["a"], ["b"], []], no_ground_truth="skip"
        )
        caption = evaluator.visualize_results(k=1).get_xlabel()
        assert caption.splitlines()[1] == "Nothing retrieved where nothing should be: 0.50"

    def test_in_korean(self) -> None:
        """Names, legend, title and caption."""
        ax = metric_bars(evaluated(), language="ko")
        assert ax.get_title(loc="left") == "검색 지표, k = 2 (질문 2개)"
        assert [tick.get_text() for tick in ax.get_yticklabels()][:3] == [
            "적중률(모두 찾음)", "성공률(하나라도 찾음)", "정밀도",
        ]  # fmt: skip
        assert ax.get_xlabel() == "첫 관련 문서: 평균 순위 1.50, 찾은 질문 비율 1.00"

    def test_another_language_is_refused(self) -> None:
        """The refusal lists those there are."""
        with pytest.raises(ValueError, match=r"language must be one of 'en', 'ko', got 'fr'"):
            metric_bars(evaluated(), language="fr")  # type: ignore[arg-type]
        assert not pyplot.get_fignums()

    def test_colours_are_those_of_the_metrics(self) -> None:
        """Both averages of a metric have its colour; the micro one is lighter, to its edge."""
        micro, macro = metric_bars(evaluated()).containers
        edges = [to_hex(bar.get_edgecolor()) for bar in micro]
        assert edges == [to_hex(bar.get_facecolor()) for bar in list(macro)[2:5]]
        assert {bar.get_facecolor()[3] for bar in macro} == {1.0}
        assert max(bar.get_facecolor()[3] for bar in micro) < 0.5
        assert len({to_hex(bar.get_facecolor()) for bar in macro}) == len(macro)

    def test_the_legend_covers_nothing(self) -> None:
        """It lies above the axes and below the title."""
        ax = metric_bars(evaluated())
        ax.figure.canvas.draw()
        legend = ax.get_legend().get_window_extent()
        assert legend.y0 >= ax.get_window_extent().y1
        assert legend.y1 <= ax._left_title.get_window_extent().y0

    def test_value_labels_stay_inside_the_axes(self) -> None:
        """Even the longest label of the longest bar ends within the picture."""
        ax = metric_bars(OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(k=1))
        ax.figure.canvas.draw()
        edge = ax.get_window_extent().x1
        assert all(text.get_window_extent().x1 <= edge for text in ax.texts)

    def test_draws_on_the_axes_given(self) -> None:
        """No figure of its own when there is one to draw on."""
        _, ax = pyplot.subplots()
        assert metric_bars(evaluated(), ax=ax) is ax
        assert len(pyplot.get_fignums()) == 1

    def test_never_shows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Showing is the notebook's business, or the user's."""
        monkeypatch.setattr(pyplot, "show", lambda *_: pytest.fail("show() was called"))
        evaluator = OfflineRetrievalEvaluator(ACTUAL, PREDICTED)
        assert isinstance(evaluator.visualize_results(k=2), Axes)

    def test_a_cutoff_that_was_not_evaluated(self) -> None:
        """The refusal lists the cutoffs there are, and leaves no empty figure behind."""
        with pytest.raises(ValueError, match=r"k must be one of the evaluated cutoffs \(1, 3\)"):
            metric_bars(evaluated(k=[1, 3]), k=2)
        assert not pyplot.get_fignums()


class TestSeveralResults:
    """A bar per metric and result."""

    # Both queries of "good" find their only document first, one of "poor" does not find it.
    GOOD = OfflineRetrievalEvaluator([["a"], ["b"]], [["a", "x"], ["b", "x"]]).evaluate([1, 2])
    POOR = OfflineRetrievalEvaluator([["a"], ["b"]], [["a", "x"], ["y", "x"]]).evaluate([1, 2])

    def test_bars_are_the_macro_averages_of_each(self) -> None:
        ax = metric_bars({"good": self.GOOD, "poor": self.POOR}, 1)
        names = [label.get_text() for label in ax.get_yticklabels()]
        recall = names.index("Recall")
        good, poor = ax.containers
        assert (good.get_label(), poor.get_label()) == ("good", "poor")
        assert (good[recall].get_width(), poor[recall].get_width()) == (1.0, 0.5)
        # Below each other, about the row of the metric.
        centres = [bars[recall].get_y() + bars[recall].get_height() / 2 for bars in (good, poor)]
        assert centres == pytest.approx([recall - 0.2, recall + 0.2])

    def test_the_deepest_cutoff_that_all_have(self) -> None:
        other = OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], ["b"]]).evaluate([1, 3])
        assert "k = 1" in metric_bars({"one": self.GOOD, "other": other}).get_title(loc="left")

    def test_no_cutoff_in_common(self) -> None:
        other = OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], ["b"]]).evaluate(3)
        with pytest.raises(InvalidInput) as caught:
            metric_bars({"one": self.GOOD, "other": other})
        assert caught.value.argument == "k"

    def test_intervals_by_name(self) -> None:
        """One result has them, the other has none."""
        with pytest.warns(KragEvalWarning, match="2 queries"):
            intervals = {"poor": self.POOR.confidence_intervals(n_resamples=100)}
        good, poor = [
            one
            for one in metric_bars(
                {"good": self.GOOD, "poor": self.POOR}, 2, intervals=intervals
            ).containers
            if hasattr(one, "errorbar")
        ]
        assert good.errorbar is None
        assert poor.errorbar is not None

    def test_a_list_has_no_names(self) -> None:
        with pytest.raises(InvalidType) as caught:
            metric_bars([self.GOOD, self.POOR])  # type: ignore[arg-type]
        assert caught.value.argument == "result"
