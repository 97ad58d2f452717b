"""What holds of pictures beyond the words and numbers that ``golden/plots.en.txt`` holds."""

import inspect
import math
import pickle
from dataclasses import replace
from itertools import pairwise

import pytest
from golden import plots
from golden.plot_samples import (
    CHAT,
    PAIR,
    WIKI,
    compared,
    difference,
    evaluated,
    evaluated_lists,
    in_chunks,
    interval_table,
    said_beforehand,
    sliced,
    swept,
    timed,
)
from golden.refused.plots import CALLS
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator, calibrate, plotting
from krag_eval.errors import Refusal
from krag_eval.plotting import (
    budget_curves,
    comparison_forest,
    cutoff_curves,
    metric_bars,
    slice_forest,
    threshold_curves,
)


def test_bars_are_the_worked_example():
    """Widths are the values of docs/metrics.md; precision, recall and F1 have two bars."""
    ax = metric_bars(evaluated())
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    micro, macro = (
        {names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in bars}
        for bars in ax.containers
    )
    assert micro == pytest.approx({"Precision": 0.75, "Recall": 0.6, "F1": 2 / 3})
    assert macro == pytest.approx(
        {
            "Hit rate (all found)": 0.0, "Success (any found)": 1.0, "Precision": 0.75,
            "Recall": (2 / 3 + 1 / 2) / 2, "F1": 0.65625, "MRR": 0.75, "MAP": 0.4583333,
            "nDCG": 0.6934264,
        }
    )  # fmt: skip


def test_lines_are_the_averages():
    """Of every metric that there is, at every budget."""
    result = in_chunks("small", ["5w", "10w", "7w"])
    for key in result.averages("5w"):
        (values,) = (list(line.get_ydata()) for line in budget_curves(result, key).lines)
        expected = [result.averages(k)[key] for k in ("5w", "7w", "10w")]
        assert values == pytest.approx(expected, nan_ok=True)
        pyplot.close("all")


@pytest.mark.parametrize("case", CALLS)
def test_a_refusal_leaves_no_empty_figure(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refusal):
        CALLS[case]()
    assert not pyplot.get_fignums()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("draw", ["first_rank_bars", "threshold_curves"])
def test_a_picture_of_one_result_says_how_to_draw_several(draw):
    with pytest.raises(Refusal) as caught:
        CALLS[f"{draw} of a dict"]()
    assert "subplots" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("draw", "given"),
    [
        (plotting.metric_bars, evaluated()),
        (plotting.cutoff_curves, evaluated()),
        (plotting.budget_curves, in_chunks("small")),
        (plotting.latency_points, timed(1.0, 2.0)),
        (plotting.pareto_points, swept()),
        (plotting.threshold_curves, said_beforehand()),
        (lambda given, **how: plotting.metric_distribution(given, "mrr@2", **how), evaluated()),
        (plotting.first_rank_bars, evaluated()),
        (plotting.comparison_forest, compared(difference())),
        (lambda given, **how: given.plot(**how), evaluated()),
        (lambda given, **how: given.plot(**how), compared(difference())),
        (lambda given, **how: given.plot(**how), sliced(WIKI)),
        (lambda given, **how: given.plot(**how), PAIR),
        (lambda given, **how: given.plot(**how), evaluated().diagnose(k=2)),
        (
            lambda given, **how: given.plot(**how),
            calibrate("rouge1", [("a b", "a b", True), ("a b", "c d", False)] * 5),
        ),
    ],
)
def test_where_and_in_which_language_is_chosen(draw, given, monkeypatch):
    """On the axes given or in one new figure, in the language asked for; nothing is shown."""
    monkeypatch.setattr(pyplot, "show", lambda *_: pytest.fail("show() was called"))
    ax = Figure().subplots()
    assert draw(given, ax=ax, language="ko") is ax
    assert not pyplot.get_fignums()
    english = draw(given, language="en")
    assert pyplot.get_fignums() == [english.figure.number]
    texts = [
        one.get_xlabel() + one.get_ylabel() + one.get_title(loc="left") for one in (ax, english)
    ]
    assert [any("가" <= letter <= "힣" for letter in text) for text in texts] == [True, False]


def test_every_function_of_0_1_takes_a_language():
    """The others speak that of the result's ``plot``, or of KRAG_EVAL_LANG."""
    draws = {name: getattr(plotting, name) for name in plotting.__all__}
    without = {name for name, one in draws.items()
               if inspect.isfunction(one) and "ax" in inspect.signature(one).parameters
               and "language" not in inspect.signature(one).parameters}  # fmt: skip
    assert without == {
        "calibration_curve", "diagnosis_waterfall", "history_curves", "planning_curve",
        "score_cutoff_curve", "slice_forest",
    }  # fmt: skip


def test_doors_hand_on_what_is_to_be_drawn():
    """The cutoff of a result, the metric of slices."""
    result = evaluated([1, 2])
    titles = [result.plot(k).get_title(loc="left") for k in (None, 1)]
    assert ["k = 2" in title for title in titles] == [True, False]
    both = sliced(WIKI, replace(CHAT, metric="map@5"))
    assert [one.get_text() for one in both.plot("map@5").get_yticklabels()] == ["chat"]
    shown = OfflineRetrievalEvaluator([["a"]], [["a"]]).visualize_results(k=1)
    assert shown.get_title(loc="left") == "Retrieval metrics at k = 1 (1 query)"


def test_a_saved_result_is_drawn(tmp_path):
    """Nothing but the averages is needed."""
    in_chunks("small").to_json(tmp_path / "small.json")
    (line,) = budget_curves(EvaluationResult.from_json(tmp_path / "small.json")).lines
    assert list(line.get_ydata()) == [0.25, 0.75]


def test_an_undefined_value_has_a_label_and_no_bar(monkeypatch):
    result = evaluated()
    undefined = result.averages(2) | {"ndcg": math.nan}
    monkeypatch.setattr(EvaluationResult, "averages", lambda self, k: undefined)
    ax = metric_bars(result)
    assert ax.texts[-1].get_text() == "n/a"
    assert ax.containers[-1][-1].get_width() == 0.0


# --- room --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    ["bars", "bars of two results", "thresholds of a result", "everything against thresholds",
     "latency", "pareto", "calibration", "plan"],
)  # fmt: skip
def test_a_legend_covers_nothing(case):
    """It lies above the axes and below the title, however many lines there are."""
    ax = plots.CASES[case](ax=None)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.y0 >= ax.get_window_extent().y1
    assert legend.y1 <= ax._left_title.get_window_extent().y0


@pytest.mark.parametrize(
    "cutoffs",
    [[1, 2, 5, 100], [*range(1, 21)], [1, 10, 11, 12, 13, 100, None], [1, 19, 20, None],
     [100, 101, 200], [3], [None]],
)  # fmt: skip
@pytest.mark.parametrize("language", ["en", "ko"])
def test_numbers_of_cutoffs_do_not_touch(cutoffs, language):
    """In a picture as small as those of a report; each has a tick, the last a number."""
    ax = Figure(figsize=(4.9, 3.9), layout="constrained").subplots()
    cutoff_curves(evaluated(cutoffs), ax=ax, language=language)
    ax.figure.canvas.draw()
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert len({*ax.get_xticks(), *ax.get_xticks(minor=True)}) == len(cutoffs)
    last = {"en": "all", "ko": "전체"}[language] if None in cutoffs else str(cutoffs[-1])
    assert ax.get_xticklabels()[-1].get_text() == last


def test_names_at_the_ends_of_lines_do_not_overlap():
    """They stand to the right of the axes, a line of text apart."""
    ax = cutoff_curves(evaluated([1, 2, 3]))
    ax.figure.canvas.draw()
    edge = ax.get_window_extent().x1
    assert all(text.get_window_extent().x1 > edge for text in ax.texts)
    heights = sorted(text.xyann[1] for text in ax.texts)
    assert all(above - below > 0.05 for below, above in pairwise(heights))


def test_numbers_beside_bars_end_within_the_picture():
    """Beyond the error bar of each, and before the edge of the axes where a bar has length 1."""
    ax = metric_bars(evaluated(), intervals=interval_table(evaluated(), 0.1, 0.05))
    ax.figure.canvas.draw()
    ndcg = next(text for text in ax.texts if text.get_text() == "0.69").get_window_extent()
    assert ndcg.x0 > ax.transData.transform((0.6934 + 0.05, 0))[0]
    ax = metric_bars(evaluated_lists([["a"]], [["a"]], 1))
    ax.figure.canvas.draw()
    edge = ax.get_window_extent().x1
    assert all(text.get_window_extent().x1 <= edge for text in ax.texts)


@pytest.mark.parametrize(
    ("few", "many"),
    [
        (lambda: comparison_forest(compared(difference())),
         lambda: comparison_forest(compared(*(difference(f"ndcg@{k}") for k in range(1, 21))))),
        (lambda: metric_bars({"a": evaluated()}),
         lambda: metric_bars({name: evaluated() for name in "abcdef"})),
        (lambda: slice_forest(sliced(WIKI)),
         lambda: slice_forest(sliced(*(replace(WIKI, slice=str(i)) for i in range(20))))),
    ],
    ids=["forest", "bars", "slices"],
)  # fmt: skip
def test_a_figure_grows_with_its_rows(few, many):
    assert many().figure.get_figheight() > few().figure.get_figheight() + 5


def test_more_slices_than_fit_are_counted():
    """A picture of 60 rows, and how many are missing."""
    ax = slice_forest(sliced(*(replace(WIKI, slice=f"corpus {i}") for i in range(75))))
    assert len(ax.get_yticklabels()) == 60
    assert "15 more" in ax.get_xlabel()


@pytest.mark.parametrize("in_grid", [True, False])
def test_the_axes_given_are_divided_among_scales(in_grid):
    """Scores, scores where lower is better and ranks stay where the Axes was, in this order."""
    figure = pyplot.figure()
    ax = figure.add_subplot() if in_grid else figure.add_axes((0.1, 0.1, 0.8, 0.8))
    place = ax.get_position()
    rows = [difference("mean_rank@10", 1.5, (1.0, 2.0)), difference("redundancy@5"), difference()]
    assert comparison_forest(compared(*rows), ax=ax) is ax
    boxes = [one.get_position() for one in figure.axes]
    assert len(boxes) == 3
    assert all(below.y1 < above.y0 for above, below in pairwise(boxes))
    assert (boxes[-1].y0, boxes[0].y1) == pytest.approx((place.y0, place.y1))


def test_scales_below_each_other_do_not_touch():
    above, below = comparison_forest(
        compared(difference(), difference("mean_rank@10", 1.5, (1.0, 2.0)))
    ).figure.axes
    above.figure.canvas.draw()
    assert below.get_tightbbox().y1 <= above.get_tightbbox().y0 + 1


@pytest.mark.parametrize("name", ["b", "bm25 with reranker"])
def test_a_forest_is_as_narrow_as_its_names_allow(name):
    """The names above the axis do not touch; short ones leave no more than a phone shows."""
    comparison = compared(difference())
    rows = tuple(replace(one, a=name, b=name) for one in comparison.differences)
    comparison = replace(comparison, differences=rows)
    ax = comparison_forest(comparison)
    ax.figure.canvas.draw()
    left, right = (one for one in ax.texts if one.get_text().startswith("←")
                   or one.get_text().endswith("→"))  # fmt: skip
    assert left.get_window_extent().x1 < right.get_window_extent().x0
    assert (plotting.forest_size(comparison)[0] < 5.5) == (name == "b")


def test_shared_axes_cut_no_interval_off():
    """The second picture makes the axis no shorter than the first one needs."""
    first, second = pyplot.subplots(2, sharex=True)[1]
    comparison_forest(compared(difference(value=-0.3, interval=(-0.5, -0.1))), first)
    comparison_forest(compared(difference(value=0.6, interval=(0.4, 0.8))), second)
    low, high = first.get_xlim()
    assert low < -0.5
    assert high > 0.8


@pytest.mark.parametrize("case", ["forest of long names", "forest"])
def test_any_name_and_an_undefined_row_can_be_drawn(case):
    plots.CASES[case](ax=None).figure.canvas.draw()


def test_thresholds_have_no_more_lines_than_can_be_told_apart():
    """Seven of the columns; their looks differ in more than colour, also those of systems."""
    assert len(threshold_curves(said_beforehand().metrics_at_thresholds()).lines) == 7
    for ax in (cutoff_curves(evaluated([1, 2, 3])), plots.CASES["budgets of seven"](ax=None)):
        looks = {(line.get_marker(), line.get_linestyle()) for line in ax.lines}
        assert len(looks) == len(ax.lines)


def test_a_notebook_cell_may_end_with_a_plot():
    """IPython leaves what is written to this method, which writes nothing; a pickle keeps it."""
    ax = metric_bars(evaluated())
    again = pickle.loads(pickle.dumps(ax.figure)).axes[0]
    assert type(ax) is type(again) is Axes
    assert ax._ipython_display_() is again._ipython_display_() is None
    given = pyplot.subplots()[1]
    assert not hasattr(metric_bars(evaluated(), ax=given), "_ipython_display_")
