"""Curves against the cutoff and the threshold, read from the artists."""

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from krag_eval import EvaluationResult, Matcher, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.plotting import budget_curves, cutoff_curves, latency_points, threshold_curves
from krag_eval.results.latency import RetrievalRun

from .plot_samples import (
    evaluated,
    in_chunks,
    interval_table,
    letters,
)


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
            "Hit rate (all found)", "Macro recall", "Macro precision", "MRR", "MAP", "nDCG"
        }  # fmt: skip
        assert drawn["Macro recall"] == pytest.approx([1 / 6, 7 / 12, 0.75])
        assert drawn["MRR"] == pytest.approx([0.5, 0.75, 0.75])
        assert drawn["Hit rate (all found)"] == [0.0, 0.0, 0.5]

    def test_cutoffs_stand_in_order(self) -> None:
        """Whatever order they were asked for in, and all documents last."""
        ax = cutoff_curves(evaluated([3, None, 1]), "mrr")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "3", "all"]
        assert lines(ax)["MRR"] == [0.5, 0.75, 0.75]

    def test_cutoffs_stand_at_their_numbers(self) -> None:
        """On a linear axis up to 20 times the first one, and all documents after a gap."""
        ax = cutoff_curves(evaluated([1, 2, 20, None]), "mrr")
        assert ax.get_xscale() == "linear"
        # A fifth of the way from 1 to 20.
        assert list(ax.lines[0].get_xdata()) == [1, 2, 20, pytest.approx(20 + 19 / 5)]
        assert ax.spines["bottom"].get_bounds()[1] == 20
        assert ax.get_xlim()[1] == pytest.approx(23.8)

    def test_a_wide_range_is_logarithmic(self) -> None:
        """All documents are a fifth of the way from 1 to 100 beyond it."""
        ax = cutoff_curves(evaluated([1, 2, 5, 100, None]), "mrr")
        assert ax.get_xscale() == "log"
        assert list(ax.lines[0].get_xdata()) == [1, 2, 5, 100, pytest.approx(100 * 100 ** (1 / 5))]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "5", "100", "all"]
        assert [tick.get_text() for tick in ax.get_xticklabels(minor=True)] == []

    @pytest.mark.parametrize(
        "cutoffs",
        [[1, 2, 5, 100], [*range(1, 21)], [1, 10, 11, 12, 13, 100, None], [1, 19, 20, None],
         [100, 101, 200], [3], [None]],
    )  # fmt: skip
    @pytest.mark.parametrize("language", ["en", "ko"])
    def test_numbers_of_cutoffs_do_not_touch(self, cutoffs: list[int | None], language) -> None:
        """In a picture as small as those of a report; each has a tick, the last a number."""
        from matplotlib.figure import Figure

        ax = Figure(figsize=(4.9, 3.9), layout="constrained").subplots()
        cutoff_curves(evaluated(cutoffs), ax=ax, language=language)
        ax.figure.canvas.draw()
        boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
        assert len({*ax.get_xticks(), *ax.get_xticks(minor=True)}) == len(cutoffs)
        last = {"en": "all", "ko": "전체"}[language] if None in cutoffs else str(cutoffs[-1])
        assert ax.get_xticklabels()[-1].get_text() == last

    def test_lines_are_named_at_their_ends(self) -> None:
        """Name and last value, to the right of the axes, none upon another."""
        ax = cutoff_curves(evaluated([1, 2, 3]))
        told = [text.get_text() for text in ax.texts]
        assert "nDCG 0.69" in told
        assert "Hit rate (all found) 0.50" in told
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
        with pytest.raises(ValueError, match=r"'mean_rank' has no upper end and shares no axis"):
            cutoff_curves(evaluated(), ["mrr", "mean_rank"])
        assert not pyplot.get_fignums()

    def test_a_metric_that_is_not_there(self) -> None:
        """The refusal names what is like it."""
        with pytest.raises(InvalidInput, match="'ndcg'") as refused:
            cutoff_curves(evaluated(), "ndgc")
        assert refused.value.argument == "metrics"

    @pytest.mark.parametrize("metrics", [[], ["mrr"] * 8])
    def test_too_few_and_too_many(self, metrics: list[str]) -> None:
        """No more lines than can be told apart."""
        with pytest.raises(ValueError, match=r"1 to 7 averages.*got [08]"):
            cutoff_curves(evaluated(), metrics)

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
        ax = cutoff_curves(evaluated([1, None]), "macro_recall", language="ko")
        assert (list(lines(ax)), ax.get_xlabel()) == (["재현율(macro)"], "컷오프 k")
        assert ax.get_xticklabels()[1].get_text() == "전체"

    def test_budgets_are_left_out(self) -> None:
        """They share no scale with k."""
        ax = cutoff_curves(in_chunks("small", ["5w", 2, "10w", 1]), "macro_token_recall")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2"]
        assert lines(ax) == {"Macro token recall": [0.25, 0.75]}

    def test_budgets_alone(self) -> None:
        """Where there is no k, they are drawn as cutoffs are."""
        ax = cutoff_curves(in_chunks("small", ["10w", "5w"]), ["token_recall", "redundancy"])
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "10"]
        assert lines(ax)["Macro token recall"] == [0.25, 0.75]
        assert "Redundancy (lower is better)" in lines(ax)
        assert ax.get_xlabel() == "Budget in words"
        assert ax.get_title(loc="left") == "Metrics against the budget (2 queries)"
        mixed = cutoff_curves(in_chunks("small", ["10w", "9c"]), "token_recall")
        assert {tick.get_text() for tick in mixed.get_xticklabels()} == {
            "10\nwords", "9\ncharacters"
        }  # fmt: skip
        assert mixed.get_xlabel() == "Budget"


class TestSystemsAgainstCutoffs:
    """One average of several systems against k."""

    @staticmethod
    def better(k: object) -> EvaluationResult:
        """Swap two documents of the second query: recall at 1 is the mean of 1/3 and 1/2."""
        predicted = [["doc1", "doc2", "doc5"], ["doc4", "doc6", "doc5"]]
        actual = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
        return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=k)  # type: ignore[arg-type]

    def test_one_line_per_system(self) -> None:
        """Each at the cutoffs it has, on an axis that has all of them."""
        systems = {"sample": evaluated([3, 1]), "better": self.better([2, None, 1])}
        ax = cutoff_curves(systems, "macro_recall")
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "3", "all"]
        drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
        assert drawn["sample"] == [[1, pytest.approx(1 / 6)], [3, 0.75]]
        assert drawn["better"] == [
            [1, pytest.approx(5 / 12)], [2, pytest.approx(7 / 12)], [pytest.approx(3.4), 0.75]
        ]  # fmt: skip
        assert ax.get_title(loc="left") == "Macro recall against k (2 queries)"
        assert ax.get_ylabel() == "Macro recall"
        assert "better 0.75" in [text.get_text() for text in ax.texts]

    def test_the_average_is_ndcg_or_what_all_have(self) -> None:
        """One of them, however it is named."""
        systems = {"a": evaluated([1, 2]), "b": evaluated([1, 2])}
        assert cutoff_curves(systems).get_ylabel() == "nDCG"
        assert cutoff_curves(systems, ["mean_rank"]).get_ylim()[0] == 1.0
        with pytest.raises(InvalidInput) as refused:
            cutoff_curves(systems, ["mrr", "ndcg"])
        assert refused.value.argument == "metrics"
        with pytest.raises(InvalidInput, match="'a'") as refused:
            cutoff_curves(systems, "token_iou")
        assert refused.value.argument == "metrics"

    def test_intervals_are_bands(self) -> None:
        """Of the systems that have some."""
        systems = {"a": evaluated([1, 2]), "b": evaluated([1, 2])}
        table = interval_table(systems["a"], 0.1, 0.1)
        assert len(cutoff_curves(systems, "mrr", intervals={"b": table}).collections) == 1
        with pytest.raises(InvalidType):
            cutoff_curves(systems, "mrr", intervals=table)
        with pytest.raises(InvalidType):
            cutoff_curves(systems["a"], "mrr", intervals=3)  # type: ignore[arg-type]

    def test_budgets_alone_are_refused(self) -> None:
        """They have a scale, and a picture of their own."""
        systems = {"a": evaluated([1, 2]), "b": in_chunks("small")}
        with pytest.raises(InvalidInput, match="'b'") as refused:
            cutoff_curves(systems)
        assert refused.value.argument == "result"

    @pytest.mark.parametrize("results", [["small"], {"small": 1}, None])
    def test_something_else(self, results: object) -> None:
        """Neither a result nor results by name."""
        with pytest.raises(InvalidType) as refused:
            cutoff_curves(results)  # type: ignore[arg-type]
        assert refused.value.argument == "result"

    def test_no_more_systems_than_can_be_told_apart(self) -> None:
        """Seven, each with a look of its own."""
        result = evaluated([1, 2])
        assert len(cutoff_curves({f"system {i}": result for i in range(7)}).lines) == 7
        for number in (0, 8):
            with pytest.raises(InvalidInput) as refused:
                cutoff_curves({f"system {i}": result for i in range(number)})
            assert refused.value.argument == "result"

    def test_in_korean(self) -> None:
        """Names and axes."""
        ax = cutoff_curves({"가": evaluated([1, 2])}, "mrr", language="ko")
        assert ax.get_title(loc="left") == "k에 따른 MRR (질문 2개)"


def timed(*seconds: float, k: object = (1, 2)) -> EvaluationResult:
    """Return the sample, answered in so many seconds."""
    return dataclasses.replace(evaluated(k), retrieval=RetrievalRun(np.array(seconds)))


class TestLatencyPoints:
    """An average against how long answers took."""

    def test_one_point_per_system(self) -> None:
        """At the median, with a line to the 95th percentile, in milliseconds below a second."""
        ax = latency_points({"fast": timed(0.1, 0.3), "slow": timed(0.4, 0.8)}, "mrr@1")
        points = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
        assert points["fast (0.50)"] == [[pytest.approx(200), 0.5]]
        assert points["slow (0.50)"] == [[pytest.approx(600), 0.5]]
        # Between two values, the 95th percentile is 0.95 of the way.
        ends = sorted(x for line in ax.lines for x in line.get_xdata())
        assert ends == pytest.approx([200, 200, 290, 600, 600, 780])
        assert ax.get_xlim()[0] == 0
        assert ax.get_xlabel().startswith("Milliseconds per query")
        assert ax.get_title(loc="left") == "MRR at k = 1 against latency (2 queries)"
        told = [text.get_text() for text in ax.get_legend().get_texts()]
        assert told == ["fast (0.50)", "slow (0.50)"]

    def test_seconds(self) -> None:
        """From one second on."""
        ax = latency_points(timed(1.0, 3.0), "macro_recall@2")
        assert ax.get_xlabel().startswith("Seconds per query")
        assert lines(ax) == {"Macro recall (0.58)": [pytest.approx(7 / 12)]}

    def test_ndcg_at_the_deepest_cutoff_that_all_have(self) -> None:
        """If nothing is named."""
        ax = latency_points({"a": timed(1, 2, k=[1, 2, 3]), "b": timed(1, 2, k=[2, 1, None])})
        assert ax.get_title(loc="left").startswith("nDCG at k = 2 ")
        with pytest.raises(InvalidInput) as refused:
            latency_points({"a": timed(1, 2, k=1), "b": timed(1, 2, k=2)})
        assert refused.value.argument == "results"

    def test_what_was_not_measured_is_named(self) -> None:
        """Nothing is left out in silence."""
        systems = {"asked": timed(1, 2), "read": evaluated([1, 2]), "failed": timed(math.nan)}
        ax = latency_points(systems)
        assert list(lines(ax)) == ["asked (0.69)"]
        assert ax.get_xlabel().endswith("not measured: read, failed")
        with pytest.raises(InvalidInput) as refused:
            latency_points({"read": evaluated([1, 2])})
        assert refused.value.argument == "results"

    def test_intervals_are_lines(self) -> None:
        """Up and down."""
        result = timed(1, 2)
        table = interval_table(result, 0.1, 0.05)
        ax = latency_points({"a": result}, "mrr@1", intervals={"a": table})
        assert [0.4, 0.55] in [list(line.get_ydata()) for line in ax.lines]

    def test_a_metric_that_is_not_there(self) -> None:
        """Nor its cutoff."""
        for metric in ("ndgc@1", "ndcg@7", "ndcg"):
            with pytest.raises(InvalidInput) as refused:
                latency_points({"a": timed(1, 2)}, metric)
            assert refused.value.argument == "metric"

    def test_in_korean(self) -> None:
        """Names and axes."""
        ax = latency_points({"가": timed(1, 2)}, "mrr@1", language="ko")
        assert ax.get_title(loc="left") == "지연 시간에 따른 MRR, k = 1 (질문 2개)"


class TestBudgetCurves:
    """An average against the budget.

    Of the two items, the first five words of small chunks hold a half and nothing, the first ten
    all and a half. A large chunk does not fit into five words, and holds a whole item.
    """

    def test_one_line_per_system(self) -> None:
        """At the budgets, on their scale, under the systems' names."""
        ax = budget_curves({name: in_chunks(name) for name in ("small", "large")})
        assert lines(ax) == {"small": [0.25, 0.75], "large": [0.0, 1.0]}
        assert [list(line.get_xdata()) for line in ax.lines] == [[5, 10], [5, 10]]
        assert ax.get_xlim() == (0, 10)
        assert {text.get_text() for text in ax.texts} == {"small 0.75", "large 1.00"}
        assert ax.get_title(loc="left") == "Macro token recall against the budget (2 queries)"
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("Budget in words", "Macro token recall")

    def test_values_are_the_averages(self) -> None:
        """Of every metric that there is."""
        result = in_chunks("small", ["5w", "10w", "7w"])
        for key in result.averages("5w"):
            (values,) = (list(line.get_ydata()) for line in budget_curves(result, key).lines)
            expected = [result.averages(k)[key] for k in ("5w", "7w", "10w")]
            assert values == pytest.approx(expected, nan_ok=True)
            pyplot.close("all")

    def test_each_system_where_it_was_evaluated(self) -> None:
        """They need not have the same budgets, nor one in common."""
        systems = {"small": in_chunks("small"), "large": in_chunks("large", ["20w", 5])}
        ax = budget_curves(systems)
        assert [list(line.get_xdata()) for line in ax.lines] == [[5, 10], [20]]
        assert ax.get_xlim() == (0, 20)

    def test_a_result_alone(self) -> None:
        """It has no name; the metric is named at the end. Its interval is a band."""
        result = in_chunks("small")
        ax = budget_curves(result, intervals=interval_table(result, 0.1, 0.05))
        assert [text.get_text() for text in ax.texts] == ["Macro token recall 0.75"]
        (band,) = ax.collections
        corners = {(x, round(float(y), 6)) for x, y in band.get_paths()[0].vertices}
        assert corners == {(5, 0.15), (5, 0.3), (10, 0.65), (10, 0.8)}

    def test_intervals_of_several_systems(self) -> None:
        """By name; one may have none."""
        systems = {name: in_chunks(name) for name in ("small", "large")}
        table = interval_table(systems["large"], 0.1, 0.1)
        assert len(budget_curves(systems, intervals={"large": table}).collections) == 1
        with pytest.raises(InvalidInput) as error:
            budget_curves(systems, intervals={"huge": table})
        assert error.value.argument == "intervals"
        with pytest.raises(InvalidType) as kind:
            budget_curves(systems, intervals=table)
        assert kind.value.argument == "intervals"

    def test_without_words(self) -> None:
        """Recall is drawn where the matcher counts none, and what there is where there is none."""
        assert set(lines(budget_curves(in_chunks("large", matcher="text")))) == {"Macro recall"}
        micro = in_chunks("large", matcher="text", averaging_method="micro")
        assert set(lines(budget_curves(micro))) == {"Micro recall"}
        mixed = {"a": in_chunks("small"), "b": in_chunks("small", matcher="text")}
        assert budget_curves(mixed).get_ylabel() == "Macro recall"

    def test_lower_is_better(self) -> None:
        """The axis says so, of scores and of ranks."""
        result = in_chunks("small")
        assert budget_curves(result, "redundancy").get_ylabel() == "Redundancy (lower is better)"
        ranks = budget_curves(result, "mean_rank")
        assert ranks.get_ylabel() == "Mean rank (lower is better)"
        assert ranks.get_ylim()[0] == 1.0

    def test_undefined_throughout(self) -> None:
        """A system without a value is named all the same."""
        systems = {"small": in_chunks("small"), "large": in_chunks("large", ["5w"])}
        ax = budget_curves(systems, "redundancy")
        assert {text.get_text() for text in ax.texts} == {"small 0.00", "large n/a"}

    def test_of_saved_results(self, tmp_path: Path) -> None:
        """Nothing but the averages is needed."""
        in_chunks("small").to_json(tmp_path / "small.json")
        read = EvaluationResult.from_json(tmp_path / "small.json")
        assert lines(budget_curves({"read": read})) == {"read": [0.25, 0.75]}

    def test_a_function_of_ones_own(self) -> None:
        """The axis names it; those of two functions share none."""
        result = in_chunks("small", ["5t", "10t"], length=letters)
        ax = budget_curves(result)
        assert list(ax.lines[0].get_xdata()) == [5, 10]
        assert "letters" in ax.get_xlabel()
        other = in_chunks("small", ["5t", "10t"], length=str.__len__)
        with pytest.raises(InvalidInput) as error:
            budget_curves({"a": result, "b": other})
        assert error.value.argument == "results"

    def test_several_units(self) -> None:
        """One is to be chosen, unless the systems have only one in common."""
        both, words = in_chunks("small", ["5w", "10w", "9c"]), in_chunks("small")
        assert list(budget_curves({"both": both, "words": words}).lines[0].get_xdata()) == [5, 10]
        drawn = budget_curves(both, unit="c")
        assert list(drawn.lines[0].get_xdata()) == [9]
        assert drawn.get_xlabel() == "Budget in characters"
        for results, unit in (both, None), (both, "t"), ({"both": both, "words": words}, "c"):
            with pytest.raises(InvalidInput) as error:
                budget_curves(results, unit=unit)  # type: ignore[arg-type]
            assert error.value.argument == "unit"

    def test_no_unit_in_common(self) -> None:
        """Words and characters have no scale in common."""
        with pytest.raises(InvalidInput) as error:
            budget_curves({"words": in_chunks("small"), "letters": in_chunks("small", ["9c"])})
        assert error.value.argument == "results"

    def test_without_a_budget(self) -> None:
        """There is nothing to draw; the advice is to evaluate with one."""
        with pytest.raises(InvalidInput) as error:
            budget_curves({"small": in_chunks("small"), "large": in_chunks("large", [1, 2])})
        assert error.value.argument == "results"
        assert str(error.value.fix) == "evaluate with budget=[500, 1000, 2000]"
        assert not pyplot.get_fignums()

    @pytest.mark.parametrize("results", [["small"], {"small": 1}, {1: None}, None])
    def test_something_else(self, results: object) -> None:
        """Neither a result nor results by name."""
        with pytest.raises(InvalidType) as error:
            budget_curves(results)  # type: ignore[arg-type]
        assert error.value.argument == "results"

    def test_no_more_systems_than_can_be_told_apart(self) -> None:
        """Seven looks, each of its own, also in grey."""
        result = in_chunks("small")
        ax = budget_curves({f"system {i}": result for i in range(7)})
        assert len({(line.get_marker(), line.get_linestyle()) for line in ax.lines}) == 7
        for number in (0, 8):
            with pytest.raises(InvalidInput) as error:
                budget_curves({f"system {i}": result for i in range(number)})
            assert error.value.argument == "results"

    def test_a_metric_that_a_system_lacks(self) -> None:
        """The refusal names the system."""
        systems = {"a": in_chunks("small"), "b": in_chunks("small", matcher="text")}
        with pytest.raises(InvalidInput, match="'b'") as error:
            budget_curves(systems, "token_iou")
        assert error.value.argument == "metric"

    def test_large_budgets_are_easy_to_read(self) -> None:
        """Thousands are set apart, and ticks that would touch are left out."""
        ax = budget_curves(in_chunks("small", ["900w", "1000w", "4000w"]))
        ax.figure.canvas.draw()
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1,000", "4,000"]

    def test_in_korean(self) -> None:
        """Names and axes."""
        ax = budget_curves(in_chunks("small"), language="ko")
        assert ax.get_title(loc="left") == "예산에 따른 토큰 재현율(macro) (질문 2개)"
        assert ax.get_xlabel() == "예산(단어 수)"

    def test_systems_of_different_sizes(self) -> None:
        """The title has both numbers of queries."""
        evaluator = OfflineRetrievalEvaluator([["a b"]], [["a b"]], matcher="coverage")
        ax = budget_curves({"two": in_chunks("small"), "one": evaluator.evaluate(budget=5)})
        assert "2 queries / 1 query" in ax.get_title(loc="left")

    def test_draws_on_the_axes_given(self) -> None:
        """No figure of its own when there is one to draw on."""
        _, axes = pyplot.subplots()
        assert budget_curves(in_chunks("small"), ax=axes) is axes
        assert len(pyplot.get_fignums()) == 1


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
        assert lines(ax) == {"Macro recall": [1.0, 0.5, 0.0]}
        assert list(ax.lines[0].get_xdata()) == [0.2, 0.6, 1.0]

    def test_of_a_column(self) -> None:
        """A single average need not be a table."""
        column = swept().metrics_at_thresholds(["mrr@1", "ndcg@1"], [0.2, 0.6])["ndcg@1"]
        assert lines(threshold_curves(column)) == {"nDCG": [1.0, 0.5]}

    def test_of_a_result(self) -> None:
        """Its own threshold is marked, and the legend has the values there."""
        ax = threshold_curves(swept())
        drawn = lines(ax)
        assert "Macro recall (0.50)" in drawn
        assert "Threshold in use: 0.6" in drawn
        mark = next(line for line in ax.lines if line.get_label().startswith("Threshold"))
        assert list(mark.get_xdata()) == [0.6, 0.6]
        points = [line for line in ax.lines if line.get_label().startswith("_")]
        assert {(*line.get_xdata(), *line.get_ydata()) for line in points} == {(0.6, 0.5)}

    def test_a_mark_between_the_rows(self) -> None:
        """A threshold that was not computed is marked, without a value."""
        table = swept().metrics_at_thresholds("mrr@1", [0.2, 0.6])
        assert list(lines(threshold_curves(table, 0.3))) == ["MRR", "Threshold in use: 0.3"]

    def test_chosen_metrics_of_a_result(self) -> None:
        """Averages with their cutoffs, evaluated or not."""
        drawn = lines(threshold_curves(swept(), metrics="macro_precision@7"))
        assert "Macro precision (0.50)" in drawn

    def test_ranks_are_left_out_unless_alone(self) -> None:
        """A table with everything is drawn without the mean rank."""
        table = pd.DataFrame({"mean_rank@1": [1.5, 2.0], "mrr@1": [0.7, 0.5]}, index=[0.1, 0.9])
        assert list(lines(threshold_curves(table))) == ["MRR"]
        ax = threshold_curves(table["mean_rank@1"])
        assert ax.get_ylabel() == "Mean rank (lower is better)"
        with pytest.raises(ValueError, match=r"'mean_rank@1' has no upper end and shares no axis"):
            threshold_curves(table, metrics=["mrr@1", "mean_rank@1"])

    def test_no_more_lines_than_can_be_told_apart(self) -> None:
        """Of a table with everything, the first seven columns."""
        assert len(lines(threshold_curves(swept().metrics_at_thresholds()))) == 7

    def test_at_a_budget(self) -> None:
        """Of budgets alone, the largest; where lower is better, the legend says so."""
        result = in_chunks("small")
        title = threshold_curves(result).get_title(loc="left")
        assert title == "Metrics within 10 words against the threshold"
        drawn = lines(threshold_curves(result, metrics=["redundancy@5w", "mrr@5w"]))
        assert "Redundancy (lower is better) (0.00)" in drawn

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
