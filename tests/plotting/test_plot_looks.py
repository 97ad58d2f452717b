"""Colours and names that every picture shares: of metrics, of outcomes, on white and dark paper."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from krag_eval import (
    History,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    calibrate,
    compare,
    plotting,
    sweep,
)
from krag_eval.errors import InvalidType
from krag_eval.plotting.styling import DARK, LINES, looks_of
from krag_eval.results.history import HistoryRun
from krag_eval.results.latency import RetrievalRun
from krag_eval.retrievers.sweep import Sweep
from krag_eval.scoring.metrics import METRICS, averages_of
from krag_eval.statistics.intervals import Spread
from krag_eval.statistics.planning import QuestionPlan

from .plot_samples import evaluated, in_chunks

KEYS = list(averages_of(METRICS.values()))
# Of the page: what the colours of outcomes, ink and paper are taken from.
OF_THE_PAGE = {"--ink", "--paper", "--good", "--warn", "--bad"}
MADE = datetime(2026, 1, 1, tzinfo=UTC)
WHITE, NEARLY_BLACK = "#ffffff", "#16181d"
FOUND, PARTIAL, MISSED = "#009e73", "#b97a00", "#d55e00"


@cache
def swept() -> Sweep:
    """Return a sweep with a point on the front and one that is not."""
    texts = [f"rule {i} one two three four" for i in range(30)]
    rows = [{"question": str(i), "actual": [text]} for i, text in enumerate(texts)]
    makers = {
        "right": lambda chunks: lambda question: chunks[int(question) :],
        "wrong": lambda chunks: lambda question: chunks,
    }
    return sweep(texts, rows, {"whole": lambda text: [text]}, makers, 1, None, n_resamples=100,
                 progress=False)  # fmt: skip


@cache
def pictures(language: Any = "en") -> dict[str, Callable[[Axes], object]]:
    """Return one picture of every kind, of results with as many metrics as there can be."""
    told: Any = {"language": language}
    result, words = evaluated([1, 2, None]), in_chunks("small", ["5w", "10w"])
    both = {"small": words, "large": in_chunks("large")}
    timed = replace(evaluated([1, 2]), retrieval=RetrievalRun(np.array([0.1, 0.3])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)  # two queries are few
        compared = compare(evaluated([2]), evaluated([2]), metric=["ndcg@2", "mean_rank@2"])
        slices = result.by("items", k=2)
        runs = [HistoryRun("a", result, MADE), HistoryRun("b", result, MADE, is_comparable=False)]
        history = History("runs", tuple(runs), ("macro_recall@2", "ndcg@2"))
        history.bounds(runs[0], "ndcg@2")
        diagnosis = result.diagnose(["doc1", "doc2"], k=2)
    chosen = ["macro_recall@1", "micro_recall@1", "recall@2"]
    plan = QuestionPlan("macro_recall@2", 0.1, 0.8, 0.05, Spread(0.5, 100, 0.05))
    return {
        "bars": lambda ax: plotting.metric_bars(words, "5w", ax, **told),
        "cutoffs": lambda ax: plotting.cutoff_curves(result, ax=ax, **told),
        "budgets": lambda ax: plotting.budget_curves(both, ax=ax, **told),
        "latency": lambda ax: plotting.latency_points(timed, ax=ax, **told),
        "pareto": lambda ax: plotting.pareto_points(swept(), ax=ax, **told),
        "thresholds": lambda ax: plotting.threshold_curves(words, ax=ax, **told),
        "chosen": lambda ax: plotting.threshold_curves(
            in_chunks("small", [1, 2]), ax=ax, metrics=chosen, **told
        ),
        "queries": lambda ax: plotting.metric_distribution(result, "recall@2", ax, **told),
        "ranks": lambda ax: plotting.first_rank_bars(result, ax, **told),
        "forest": lambda ax: plotting.comparison_forest(compared, ax, **told),
        "history": lambda ax: history.plot(ax, **told),
        "planning": lambda ax: plan.plot(ax, **told),
        "slices": lambda ax: slices.plot(ax=ax, **told),
        "waterfall": lambda ax: diagnosis.plot(ax, **told),
    }


def lightness(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
             for part in to_rgb(colour)]  # fmt: skip
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.2, from 1 to 21."""
    lighter, darker = sorted((lightness(one), lightness(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def on_dark() -> dict[str, str]:
    """Return each variable that the CSS sets on dark paper."""
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", DARK))


NAMES = list(pictures())


class TestLooks:
    """A look for each metric."""

    @pytest.mark.parametrize("key", KEYS)
    def test_a_metric_has_one_colour_whatever_is_drawn_with_it(self, key: str) -> None:
        """Alone, at a cutoff, and among all others."""
        (alone,) = looks_of([key])
        assert looks_of([f"{key}@5"]) == [alone]
        assert looks_of([*KEYS, key])[KEYS.index(key)].colour == alone.colour

    def test_metrics_differ_and_their_averages_do_not(self) -> None:
        """Micro and macro share a colour and no dashes; the micro one is hollow."""
        by_column: dict[str, set[str]] = {}
        for key in KEYS:
            column = averages_of(METRICS.values())[key].column.lstrip("#")
            by_column.setdefault(column, set()).add(looks_of([key])[0].colour)
        assert all(len(colours) == 1 for colours in by_column.values())
        assert len(set.union(*by_column.values())) == len(by_column)
        micro, macro = looks_of(["micro_recall", "macro_recall"])
        assert micro.dashes != macro.dashes
        assert (micro.hollow, macro.hollow) == (True, False)

    def test_lines_of_one_metric_differ_in_dashes(self) -> None:
        """As many as there can be in a picture."""
        looks = looks_of([f"recall@{k}" for k in range(1, 8)])
        assert len({one.dashes for one in looks}) == 7

    def test_metrics_of_ones_own(self) -> None:
        """A look each, in the colour of no metric."""
        first, second, again = looks_of(["mine@5", "yours@5", "mine"])
        assert first.colour != second.colour
        assert again.colour not in {one.colour for one in looks_of(KEYS)}

    @pytest.mark.parametrize("looks", [looks_of(["recall", "precision", "f1", "hit_rate", "mrr",
                                                 "map", "ndcg"]), LINES])  # fmt: skip
    def test_no_two_looks_are_the_same_in_grey(self, looks: Any) -> None:
        """Marker and dashes tell them apart."""
        assert len({(one.marker, one.dashes) for one in looks}) == 7

    def test_no_metric_looks_like_an_outcome(self) -> None:
        """Their colours are a fifth of some channel apart, or more."""
        for outcome in (FOUND, PARTIAL, MISSED):
            for look in looks_of(KEYS):
                gap = np.abs(np.subtract(to_rgb(outcome), to_rgb(look.colour)))
                assert gap.max() > 0.2, (outcome, look)

    def test_outcomes_have_their_colours(self) -> None:
        """What is found, and what never is."""
        bars = plotting.first_rank_bars(evaluated()).patches
        colours = [to_hex(bar.get_facecolor()) for bar in bars]
        assert (set(colours[:-1]), colours[-1]) == ({FOUND}, MISSED)
        diagnosis = OfflineRetrievalEvaluator([["a", "b"]], [["a"]]).evaluate().diagnose(["a"])
        steps = plotting.diagnosis_waterfall(diagnosis).patches
        assert [to_hex(bar.get_facecolor()) for bar in steps][::2][:1] == [FOUND]
        assert to_hex(steps[-1].get_facecolor()) == MISSED

    def test_a_metric_is_the_same_in_all_pictures(self) -> None:
        """Of nDCG: a bar, a line, a distribution."""
        (ndcg,) = looks_of(["ndcg"])
        result = evaluated([1, 2])
        line = next(one for one in plotting.cutoff_curves(result).lines if
                    one.get_label() == "nDCG")  # fmt: skip
        spread = plotting.metric_distribution(result, "ndcg@2").patches
        bar = plotting.metric_bars(result, 2).containers[-1][-1]
        assert line.get_color() == ndcg.colour == to_hex(bar.get_facecolor())
        assert {to_hex(one.get_facecolor()) for one in spread} == {ndcg.colour}


class TestPaper:
    """One picture for white and for dark paper."""

    @pytest.mark.parametrize("name", NAMES)
    def test_every_colour_can_be_changed(self, name: str) -> None:
        """It has a variable, of the page or of the CSS; texts without a colour inherit one."""
        svg = plotting.inline_svg(pictures()[name], "a")
        assert re.search(r'^<svg [^>]* style="fill: var\(--ink, #000000\)"', svg)
        colours = re.findall(r"(?:fill|stroke): (?!none)([^;\"]+)", svg)
        variables = {re.fullmatch(r"var\((--[\w-]+), #[0-9a-f]{6}\)", one) for one in colours}
        assert None not in variables, colours
        assert {one[1] for one in variables if one} <= OF_THE_PAGE | {*on_dark()}

    def test_lines_and_bars_are_seen_on_both(self) -> None:
        """A contrast of 3 at least, as WCAG asks of graphics; 4.5 for the names of sides."""
        dark = on_dark()
        light: dict[str, str] = {}
        for draw in pictures().values():
            svg = plotting.inline_svg(draw, "a")
            light |= dict(re.findall(r"var\((--c-[\w-]+), (#[0-9a-f]{6})\)", svg))
        assert len(light) > 10
        for variable in light.keys() - {"--c-grid"}:
            least = 4.5 if variable in ("--c-better", "--c-worse") else 3
            assert contrast(light[variable], WHITE) >= least, variable
            assert contrast(dark[variable], NEARLY_BLACK) >= least, variable
        for look in [*looks_of(KEYS), *LINES]:
            assert contrast(look.colour, WHITE) >= 3
        assert min(contrast(colour, NEARLY_BLACK) for colour in dark.values()) >= 3
        assert min(contrast(colour, WHITE) for colour in (FOUND, PARTIAL, MISSED)) >= 3

    def test_colours_of_metrics_differ_on_dark_paper_too(self) -> None:
        """No two variables of metrics are the same there."""
        colours = [on_dark()[f"--c-{name.replace('_', '-')}"] for name in METRICS]
        assert all(one != other for one, other in combinations(colours, 2))

    def test_a_name_that_looks_like_a_colour_stays_as_it_is(self) -> None:
        """Only styles are changed."""
        svg = plotting.inline_svg(lambda ax: ax.set_title("fill: #000000"), "a")
        assert "fill: #000000" in [element.text for element in ET.fromstring(svg).iter()]


class TestNames:
    """One name for each average."""

    @pytest.mark.parametrize("language", ["en", "ko"])
    @pytest.mark.parametrize("name", NAMES)
    def test_no_picture_shows_a_key(self, name: str, language: str) -> None:
        """Neither ``macro_recall`` nor ``@2``."""
        svg = plotting.inline_svg(pictures(language)[name], "a")
        texts = [element.text or "" for element in ET.fromstring(svg).iter()]
        assert len(texts) > 5
        assert not [text for text in texts if re.search(r"@(\d|all)|[a-z]_[a-z]", text)]

    def test_a_long_title_has_lines(self) -> None:
        """It ends within the picture, beside long names of metrics too."""
        from matplotlib.figure import Figure

        ax = Figure(figsize=(4.9, 3.9), layout="constrained").subplots()
        plotting.metric_bars(in_chunks("small", ["1000w"]), "1000w", ax)
        ax.figure.canvas.draw()
        title = next(one for one in ax.findobj(lambda one: hasattr(one, "get_text"))
                     if one.get_text() == ax.get_title(loc="left"))  # fmt: skip
        assert title.get_window_extent().x1 <= ax.figure.bbox.x1
        assert title.get_text().replace("\n", " ").startswith("Retrieval metrics within 1,000")
        svg = plotting.inline_svg(lambda it: it.set_title("two\nlines", loc="left"), "a")
        assert "<title>two lines</title>" in svg


class TestCalibration:
    """The curve of a calibration."""

    def test_its_lines_are_those_of_the_metrics(self) -> None:
        """Precision, recall and F1."""
        pairs = [("a b", "a b", True), ("a b", "c d", False)] * 5
        ax = plotting.calibration_curve(calibrate("rouge1", pairs))
        colours = [line.get_color() for line in ax.lines[:3]]
        assert colours == [one.colour for one in looks_of(["precision", "recall", "f1"])]


@pytest.mark.parametrize(
    "draw",
    [
        plotting.first_rank_bars,
        plotting.threshold_curves,
        lambda results: plotting.metric_distribution(results, "ndcg@2"),
    ],
)
@pytest.mark.parametrize("several", [dict, list])
def test_a_picture_of_one_result_says_what_draws_several(draw, several):
    """The fix names a call."""
    results = {"one": evaluated(), "other": evaluated()}
    with pytest.raises(InvalidType) as caught:
        draw(results if several is dict else [*results.values()])
    assert caught.value.argument in ("result", "averages")
    assert "subplots" in str(caught.value.fix) or "cutoff_curves" in str(caught.value.fix)
