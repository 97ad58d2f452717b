"""Distributions over queries and items, read from the artists."""

from dataclasses import replace

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from krag_eval import OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput
from krag_eval.plotting import first_rank_bars, metric_distribution

from .plot_samples import evaluated, in_chunks


def heights(ax: Axes) -> list[int]:
    """Return the heights of the bars from left to right."""
    bars = [bar for container in ax.containers for bar in container]
    return [round(bar.get_height()) for bar in sorted(bars, key=lambda bar: bar.get_x())]


class TestMetricDistribution:
    """How many queries have which value."""

    def test_exact_values_stand_apart(self) -> None:
        """Recall 0, 1/2, 2/3, 1, 1: one bar for 0, ten between, one for 1."""
        actual = [["a"], ["a", "b"], ["a", "b", "c"], ["a"], ["b"]]
        predicted = [["x"], ["a"], ["a", "b"], ["a"], ["b"]]
        result = OfflineRetrievalEvaluator(actual, predicted).evaluate(k=3)
        ax = metric_distribution(result, "recall@3")
        assert heights(ax) == [1, *(0, 0, 0, 0, 0, 1, 1, 0, 0, 0), 2]
        labels = [tick.get_text() for tick in ax.get_xticklabels()]
        assert (labels[0], labels[-1]) == ("exactly\n0", "exactly\n1")

    def test_bars_say_how_many(self) -> None:
        """Those that are not empty; the average is told as the result has it."""
        told = [text.get_text() for text in metric_distribution(evaluated(), "recall@2").texts]
        assert sorted(filter(None, told)) == ["1", "1", "Macro recall = 0.58"]

    def test_the_average_is_marked(self) -> None:
        """Where it stands."""
        (line,) = metric_distribution(evaluated(), "macro_recall@2").lines
        assert list(line.get_xdata()) == pytest.approx([7 / 12] * 2)

    @pytest.mark.parametrize("metric", ["mrr@2", "reciprocal_rank@2"])
    def test_a_metric_by_its_own_name_or_that_of_its_mean(self, metric: str) -> None:
        """Reciprocal ranks 1 and 1/2."""
        assert heights(metric_distribution(evaluated(), metric))[6::5] == [1, 1]

    def test_no_average_no_mark(self) -> None:
        """With micro averages alone, recall has no mean over queries."""
        ax = metric_distribution(evaluated(averaging_method="micro"), "recall@2")
        assert not ax.lines

    def test_values_above_1(self) -> None:
        """They share the last bar, whose name says so."""
        evaluator = OfflineRetrievalEvaluator([["a"]], [["a", "a"]], conventions="credit=every")
        ax = metric_distribution(evaluator.evaluate(k=2), "map@2")
        assert heights(ax)[-1] == 1
        assert ax.get_xticklabels()[-1].get_text() == "≥ 1"

    def test_title_names_metric_and_queries(self) -> None:
        """What is shown, of how much, and what is left out."""
        evaluator = OfflineRetrievalEvaluator([["a"], []], [["a"], ["b"]], no_ground_truth="skip")
        ax = metric_distribution(evaluator.evaluate(k=1), "ndcg@1")
        assert ax.get_title(loc="left") == "nDCG at k = 1, query by query (1 query, 1 skipped)"
        assert sum(heights(ax)) == 1

    def test_at_a_budget(self) -> None:
        """Recall of words is a half and nothing; the axis says where lower is better."""
        result = in_chunks("small", ["5w", 5])
        ax = metric_distribution(result, "token_recall@5w")
        assert [bar.get_height() for bar in ax.patches if bar.get_height()] == [1, 1]
        assert ax.get_title(loc="left") == "Token recall within 5 words, query by query (2 queries)"
        lower = metric_distribution(result, "redundancy@5w")
        assert lower.get_xlabel() == "Redundancy of a query (lower is better)"
        korean = metric_distribution(result, "ndcg@5w", language="ko")
        assert korean.get_title(loc="left") == "질문별 nDCG 분포, 5단어 이내 (질문 2개)"

    def test_undefined_values_are_counted_in_the_title(self) -> None:
        """A metric of one's own may be undefined for some queries."""
        result = evaluated()
        table = dict(result.tables[2])
        table["ndcg"] = table["ndcg"].copy()
        table["ndcg"][0] = float("nan")
        ax = metric_distribution(
            replace(result, rows=replace(result.rows, tables={2: table})), "ndcg@2"
        )
        assert ax.get_title(loc="left") == "nDCG at k = 2, query by query (2 queries, 1 undefined)"
        assert sum(heights(ax)) == 1

    def test_a_cutoff_that_was_not_evaluated(self) -> None:
        """Also "all", where one cutoff alone would do without a name."""
        with pytest.raises(InvalidInput, match=r"'ndcg@all' .*\(2\)") as info:
            metric_distribution(evaluated(), "ndcg@all")
        assert info.value.argument == "metric"
        assert dict(info.value.fix.settings) == {"k": ...}
        assert not pyplot.get_fignums()

    @pytest.mark.parametrize("metric", ["micro_recall@2", "rank@2", "mean_rank@2", "relevant@2"])
    def test_no_value_per_query(self, metric: str) -> None:
        """Sums over queries, ranks and counts are no scores of a query."""
        with pytest.raises(InvalidInput) as info:
            metric_distribution(evaluated(), metric)
        assert info.value.argument == "metric"
        assert "first_rank_bars" in str(info.value.fix)

    def test_in_korean(self) -> None:
        """Title and axes."""
        ax = metric_distribution(evaluated(), "ndcg@2", language="ko")
        assert ax.get_title(loc="left") == "질문별 nDCG 분포, k = 2 (질문 2개)"


class TestFirstRankBars:
    """Where items are first found."""

    def test_the_sample(self) -> None:
        """Ranks 1, 2, 3 and 2; doc3 is never found."""
        ax = first_rank_bars(evaluated())
        assert heights(ax) == [1, 2, 1, 1]
        assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "3", "never"]
        told = [text.get_text().split("\n") for text in ax.texts]
        assert told == [["1", "20 %"], ["2", "40 %"], ["1", "20 %"], ["1", "20 %"]]
        assert ax.get_title(loc="left") == "Where ground truth is first found (5 items)"

    def test_deep_ranks_share_bars(self) -> None:
        """Rank 30 lies in 21 to 50, rank 1001 beyond all ranges."""
        documents = [f"d{rank}" for rank in range(1, 1002)]
        result = OfflineRetrievalEvaluator([["d1", "d30", "d1001"]], [documents]).evaluate()
        ax = first_rank_bars(result)
        named = dict(
            zip([tick.get_text() for tick in ax.get_xticklabels()], heights(ax), strict=True)
        )
        assert {name: n for name, n in named.items() if n} == {"1": 1, "21–50": 1, "1001": 1}

    def test_nothing_found(self) -> None:
        """One bar is left."""
        result = replace(evaluated())
        with pytest.warns(match="matched nothing"):
            result = OfflineRetrievalEvaluator([["a"]], [["b"]]).evaluate()
        ax = first_rank_bars(result)
        assert heights(ax) == [1]
        assert ax.get_title(loc="left") == "Where ground truth is first found (1 item)"

    def test_without_evidence(self) -> None:
        """The refusal is the result's own."""
        with pytest.raises(ValueError, match="holds no evidence"):
            first_rank_bars(replace(evaluated(), evidence=None))
        assert not pyplot.get_fignums()

    def test_draws_on_the_axes_given(self) -> None:
        """No figure of its own when there is one to draw on."""
        _, ax = pyplot.subplots()
        assert first_rank_bars(evaluated(), ax=ax) is ax
        assert metric_distribution(evaluated(), "mrr@2", ax=ax) is ax
        assert len(pyplot.get_fignums()) == 1

    def test_in_korean(self) -> None:
        """Title and the bar of the missed ones."""
        ax = first_rank_bars(evaluated(), language="ko")
        assert ax.get_xticklabels()[-1].get_text() == "못 찾음"
