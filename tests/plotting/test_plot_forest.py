"""The forest of differences, read from the artists."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from krag_eval import Comparison, Difference, SlicedComparison, Slices
from krag_eval.errors import InvalidInput
from krag_eval.plotting import Language, comparison_forest, slice_forest
from krag_eval.plotting.styling import tag_name
from krag_eval.scoring.metrics import METRICS, averages_of
from krag_eval.statistics.slices import BUILT_IN_TAGS, DIAGNOSED, Slice

BETTER, WORSE, FAINT = "#0072b2", "#b3320f", "#767676"


def difference(
    metric: str = "ndcg@10",
    value: float = 0.2,
    interval: tuple[float, float] = (0.1, 0.3),
    p: float = 0.01,
    pair: tuple[str, str] = ("bm25", "dense"),
) -> Difference:
    """Return a difference with everything that is drawn."""
    return Difference(
        *pair, metric, 0.5, 0.5 + value, value, *interval, p, p, p_holm=p, effect_size=0.3, wins=3,
        ties=2, losses=1, average=averages_of(METRICS.values()).get(metric.partition("@")[0]),
    )  # fmt: skip


def comparison(*rows: Difference) -> Comparison:
    """Return a comparison of these differences over three queries."""
    names = dict.fromkeys(name for row in rows for name in (row.a, row.b))
    per_query = {row.metric: dict.fromkeys(names) for row in rows}
    return Comparison(rows, 0.95, 1000, 0, "signature", [1, 2, 3], per_query)  # type: ignore[arg-type]


def drawn(ax: Axes) -> dict[str, tuple[float, float, float, str, bool]]:
    """Return value, bounds, colour and whether it is filled, for each row with a marker."""
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    markers = [line for line in ax.lines if line.get_marker() == "o"]
    spans = {line.get_ydata()[0]: line for line in ax.lines if len(set(line.get_ydata())) == 1
             and line.get_marker() != "o"}  # fmt: skip
    rows = {}
    for marker in markers:
        (value,), (place,) = marker.get_xdata(), marker.get_ydata()
        filled = to_hex(marker.get_markerfacecolor()) == to_hex(marker.get_color())
        rows[names[place]] = (
            value, *spans[place].get_xdata(), to_hex(marker.get_color()), filled,
        )  # fmt: skip
    return rows


def told(ax: Axes) -> list[str]:
    """Return what is written beside the axes."""
    return [text.get_text() for text in ax.texts]


class TestComparisonForest:
    """One row per pair and metric."""

    def test_rows_hold_value_interval_and_emphasis(self) -> None:
        """Blue where b is better, red where a is, hollow and grey where nothing is shown."""
        ax = comparison_forest(
            comparison(
                difference("ndcg@10"),
                difference("mrr@10", -0.2, (-0.3, -0.1)),
                difference("map@10", 0.1, (-0.1, 0.2), p=0.4),
            )
        )
        assert drawn(ax) == {
            "nDCG at k = 10": (0.2, 0.1, 0.3, BETTER, True),
            "MRR at k = 10": (-0.2, -0.3, -0.1, WORSE, True),
            "MAP at k = 10": (0.1, -0.1, 0.2, FAINT, False),
        }

    def test_shared_axes_cut_no_interval_off(self) -> None:
        """The second picture makes the axis no shorter than the first one needs."""
        first, second = pyplot.subplots(2, sharex=True)[1]
        comparison_forest(comparison(difference(value=-0.3, interval=(-0.5, -0.1))), first)
        comparison_forest(comparison(difference(value=0.6, interval=(0.4, 0.8))), second)
        low, high = first.get_xlim()
        assert low < -0.5
        assert high > 0.8

    def test_numbers_stand_beside_the_rows(self) -> None:
        """Difference, interval and corrected p, with proper minus signs, never a p of 0."""
        ax = comparison_forest(
            comparison(
                difference(value=-0.2, interval=(-0.3, -0.0001), p=0.0002),
                difference("mrr@10", 0.0, (0.0, 0.0), p=math.nan),
            )
        )
        assert "−0.200  [−0.300, −1e−04]  p < 0.001" in told(ax)
        assert "0.000  [0.000, 0.000]  p n/a" in told(ax)

    def test_zero_is_in_the_picture(self) -> None:
        """However far away the differences are."""
        ax = comparison_forest(comparison(difference(value=0.5, interval=(0.45, 0.55))))
        low, high = ax.get_xlim()
        assert low < 0 < 0.55 < high
        assert [0.0, 0.0] in [list(line.get_xdata()) for line in ax.lines]

    def test_sides_say_who_is_better(self) -> None:
        """To the right b, to the left a; for ranks the other way round."""
        assert {"← bm25 better", "dense better →"} <= set(
            told(comparison_forest(comparison(difference())))
        )
        ranks = comparison_forest(comparison(difference("mean_rank@10")))
        assert {"← dense better", "bm25 better →"} <= set(told(ranks))

    def test_scores_where_lower_is_better(self) -> None:
        """They share an axis neither with other scores nor with ranks."""
        rows = [difference("mean_rank@5"), difference("redundancy@5"), difference("ndcg@5")]
        axes = comparison_forest(comparison(*rows)).figure.axes
        names = [[tick.get_text() for tick in ax.get_yticklabels()] for ax in axes]
        assert names == [["nDCG at k = 5"], ["Redundancy at k = 5"], ["Mean rank at k = 5"]]
        assert "redundancy and its 95 % interval; lower is better" in axes[1].get_xlabel()
        by_hand = pyplot.figure().add_axes((0.1, 0.1, 0.8, 0.8))
        boxes = [
            ax.get_position() for ax in comparison_forest(comparison(*rows), by_hand).figure.axes
        ]
        assert [box.y0 for box in boxes] == sorted((box.y0 for box in boxes), reverse=True)
        assert all(below.y1 < above.y0 for above, below in pairwise(boxes))

    def test_a_lower_rank_is_better(self) -> None:
        """A mean rank that grew is a loss for b, and the axis says so."""
        ax = comparison_forest(comparison(difference("mean_rank@10", 0.5, (0.2, 0.8))))
        assert drawn(ax)["Mean rank at k = 10"][3] == WORSE
        assert "lower is better" in ax.get_xlabel()

    def test_ranks_do_not_share_an_axis_with_scores(self) -> None:
        """They are drawn below, in units of their own."""
        both = comparison(difference(), difference("mean_rank@10", 1.5, (1.0, 2.0)))
        ax = comparison_forest(both)
        above, below = ax.figure.axes
        assert above is ax
        assert (list(drawn(above)), list(drawn(below))) == (
            ["nDCG at k = 10"],
            ["Mean rank at k = 10"],
        )
        assert above.get_xlim()[1] < 0.5 < 2.0 < below.get_xlim()[1]
        above.figure.canvas.draw()
        assert below.get_tightbbox().y1 <= above.get_tightbbox().y0 + 1

    @pytest.mark.parametrize("in_grid", [True, False])
    def test_the_axes_given_are_divided(self, in_grid: bool) -> None:
        """Both parts stay where the Axes was, in a grid or not."""
        figure = pyplot.figure()
        ax = figure.add_subplot() if in_grid else figure.add_axes((0.1, 0.1, 0.8, 0.8))
        place = ax.get_position()
        both = comparison(difference(), difference("mean_rank@10", 1.5, (1.0, 2.0)))
        assert comparison_forest(both, ax=ax) is ax
        above, below = (one.get_position() for one in figure.axes)
        assert below.y1 < above.y0
        assert (below.y0, above.y1) == pytest.approx((place.y0, place.y1))
        assert len(pyplot.get_fignums()) == 1

    def test_several_pairs_stand_under_their_metric(self) -> None:
        """A heading for each metric, and b − a on each row."""
        pairs = [("a", "b"), ("a", "c"), ("b", "c")]
        ax = comparison_forest(
            comparison(*(difference(m, pair=p) for p in pairs for m in ("ndcg@5", "mrr@5")))
        )
        names = [tick.get_text() for tick in ax.get_yticklabels()]
        ndcg, mrr = "nDCG at k = 5", "MRR at k = 5"
        assert names == [ndcg, "b − a", "c − a", "c − b", mrr, "b − a", "c − a", "c − b"]
        bold = [tick.get_text() for tick in ax.get_yticklabels() if tick.get_weight() == "bold"]
        assert bold == [ndcg, mrr]
        assert {"← second-named better", "first-named better →"} <= set(told(ax))

    def test_title(self) -> None:
        """A single pair is named, several are not."""
        assert comparison_forest(comparison(difference())).get_title(loc="left") == (
            "dense − bm25 (3 queries)"
        )
        several = comparison(difference(), difference(pair=("bm25", "c")))
        title = comparison_forest(several).get_title(loc="left")
        assert title == "Differences between systems (3 queries)"

    def test_undefined_differences_have_a_row(self) -> None:
        """Without a marker."""
        nan = math.nan
        ax = comparison_forest(comparison(difference(value=nan, interval=(nan, nan), p=nan)))
        assert drawn(ax) == {}
        assert "n/a" in told(ax)
        ax.figure.canvas.draw()

    def test_names_are_clipped_and_no_formula(self) -> None:
        """A name of any length or content stays a name."""
        name = "$x_1$ " + "long " * 50 + "\n\x00"
        ax = comparison_forest(comparison(difference(pair=(name, "b"))))
        title = ax.get_title(loc="left")
        assert title.startswith("b − $x_1$ long")
        assert len(title) < 60
        ax.figure.canvas.draw()

    def test_the_figure_grows_with_the_rows(self) -> None:
        """Rows do not crowd."""
        few = comparison_forest(comparison(difference()))
        many = comparison_forest(comparison(*(difference(f"ndcg@{k}") for k in range(1, 21))))
        assert many.figure.get_figheight() > few.figure.get_figheight() + 5

    def test_in_korean(self) -> None:
        """Title, axis and sides."""
        ax = comparison_forest(comparison(difference()), language="ko")
        assert "dense 우세 →" in told(ax)
        assert ax.get_xlabel().startswith("차이와 95% 신뢰구간")

    def test_a_comparison_draws_itself(self) -> None:
        """On the Axes given."""
        _, ax = pyplot.subplots()
        assert comparison(difference()).plot(ax) is ax


# --- slices ------------------------------------------------------------------------------------


def sliced(*rows: Slice, lower: tuple[str, ...] = ()) -> Slices:
    """Return slices of these rows, of one result in which all queries average 0.6."""
    overall = {row.metric: 0.6 for row in rows}
    return Slices("corpus", "", rows, 90, lower, 0.95, 1000, 0, "signature", overall)


WIKI = Slice("wiki", "mrr@5", 50, 0.8, 0.7, 0.9, 0.5, 0.3, 0.1, 0.5, 0.001, 0.002)
CHAT = Slice("chat", "mrr@5", 30, 0.4, 0.2, 0.6, 0.7, -0.3, -0.5, -0.1, 0.002, 0.01)
NEWS = Slice("news", "mrr@5", 12, 0.6, 0.4, 0.8, 0.6, 0.0, -0.2, 0.2, 0.9, 0.9)
TINY = Slice("tiny", "mrr@5", 3)


def test_slices_are_drawn_at_their_values() -> None:
    """With their intervals; filled where one is shown to differ, blue for the better."""
    assert drawn(slice_forest(sliced(WIKI, CHAT, NEWS, TINY))) == {
        "wiki": (0.8, 0.7, 0.9, BETTER, True),
        "chat": (0.4, 0.2, 0.6, WORSE, True),
        "news": (0.6, 0.4, 0.8, FAINT, False),
    }


def test_slices_tell_how_many_queries_they_are() -> None:
    """And p, or that there are too few; a dashed line is the average of all."""
    ax = slice_forest(sliced(WIKI, TINY))
    assert told(ax) == ["50 queries, p = 0.002", "3 queries: too few"]
    (line,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert list(line.get_xdata()) == [0.6, 0.6]
    assert ax.get_title(loc="left") == "MRR at k = 5 by corpus (90 queries)"


def test_slices_where_lower_is_better() -> None:
    """The colours change sides."""
    rows = [replace(one, metric="mean_rank@5") for one in (WIKI, CHAT)]
    colours = {name: row[3] for name, row in
               drawn(slice_forest(sliced(*rows, lower=("mean_rank@5",)))).items()}  # fmt: skip
    assert colours == {"wiki": WORSE, "chat": BETTER}


def test_one_metric_of_slices_is_drawn() -> None:
    """The first, unless another is named."""
    both = sliced(WIKI, replace(CHAT, metric="map@5"))
    assert list(drawn(slice_forest(both))) == ["wiki"]
    assert list(drawn(both.plot("map@5"))) == ["chat"]
    with pytest.raises(InvalidInput) as refused:
        slice_forest(both, "map")
    assert refused.value.argument == "metric"


def test_slices_of_a_comparison_are_drawn_at_their_differences() -> None:
    """About 0, with the pair in the title, or at the rows of several."""
    row = Difference(
        "bm25", "dense", "mrr@5", 0.5, 0.8, 0.3, 0.1, 0.5, 0.001, 0.001, 0.002, 0.5, 30, 15, 5,
        slice="wiki", n=50,
    )  # fmt: skip
    worse = replace(row, slice="chat", difference=-0.3, ci_low=-0.5, ci_high=-0.1)
    common = ("corpus", "")
    pair = SlicedComparison(*common, (row, worse), 90, (), 0.95, 1000, 0, "signature")
    ax = pair.plot()
    assert drawn(ax) == {
        "wiki": (0.3, 0.1, 0.5, BETTER, True),
        "chat": (-0.3, -0.5, -0.1, WORSE, True),
    }
    assert ax.get_title(loc="left") == "dense − bm25: MRR at k = 5 by corpus (90 queries)"
    three = replace(pair, rows=(row, replace(row, b="hybrid")))
    assert list(drawn(three.plot())) == ["wiki: dense − bm25", "wiki: hybrid − bm25"]


def test_more_slices_than_fit_are_counted() -> None:
    """A picture of 60 rows, and how many are missing."""
    many = sliced(*(replace(WIKI, slice=f"corpus {i}") for i in range(75)))
    ax = slice_forest(many)
    assert len(drawn(ax)) == 60
    assert "15 more" in ax.get_xlabel()


def test_slices_in_korean() -> None:
    """The words, and the names of built-in tags; on axes of one's own."""
    ax = pyplot.figure().subplots()
    assert sliced(WIKI).plot(ax=ax, language="ko") is ax
    built_in = replace(sliced(WIKI), tag="items", about="…").plot(language="ko")
    assert ax.get_title(loc="left") == "corpus별 MRR, k = 5 (질문 90개)"
    assert built_in.get_title(loc="left") == "정답 항목 수별 MRR, k = 5 (질문 90개)"
    for tag in (*BUILT_IN_TAGS, DIAGNOSED):
        assert tag_name(replace(sliced(WIKI), tag=tag, about="…"), 40) != "…"


@pytest.mark.parametrize(
    ("language", "title", "label"),
    [("en", "MRR at k = 5 by diagnosis (90 queries)", "cut apart by the splitter"),
     ("ko", "진단별 MRR, k = 5 (질문 90개)", "청크 경계에서 잘림")],
)  # fmt: skip
def test_slices_by_a_diagnosis(language: Language, title: str, label: str) -> None:
    """Classes have labels in pictures; what has none keeps its own."""
    rows = replace(WIKI, slice="cut_apart"), replace(WIKI, slice="(no diagnosis)")
    ax = replace(sliced(*rows), tag=DIAGNOSED, about="…").plot(language=language)
    assert ax.get_title(loc="left") == title
    assert [one.get_text() for one in ax.get_yticklabels()] == [label, "(no diagnosis)"]
