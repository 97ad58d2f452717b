"""Colours and names that every picture shares: of metrics, of outcomes, on white and dark paper."""

import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from golden import plots, recorder
from golden.plot_samples import evaluated, in_chunks
from matplotlib.colors import to_hex, to_rgb

from krag_eval import OfflineRetrievalEvaluator, plotting
from krag_eval.plotting.styling import DARK, LINES, looks_of
from krag_eval.scoring.metrics import METRICS, averages_of

KEYS = list(averages_of(METRICS.values()))
# Of the page: what the colours of outcomes, ink and paper are taken from.
OF_THE_PAGE = {"--ink", "--paper", "--good", "--warn", "--bad"}
WHITE, NEARLY_BLACK = "#ffffff", "#16181d"
FOUND, PARTIAL, MISSED = "#009e73", "#b97a00", "#d55e00"


# One picture of every kind.
NAMES = [
    "bars within a budget", "k", "budgets", "latency", "pareto", "thresholds of a result",
    "budgets against thresholds", "distribution", "first ranks", "forest of three scales",
    "history", "plan", "slices", "waterfall of pieces",
]  # fmt: skip


@cache
def drawn(name: str) -> str:
    """Return a picture as an element of a page."""
    return plotting.inline_svg(lambda ax: plots.CASES[name](ax=ax), "a")


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
    def test_no_two_looks_are_the_same_in_grey(self, looks) -> None:
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
        svg = drawn(name)
        assert re.search(r'^<svg [^>]* style="fill: var\(--ink, #000000\)"', svg)
        colours = re.findall(r"(?:fill|stroke): (?!none)([^;\"]+)", svg)
        variables = {re.fullmatch(r"var\((--[\w-]+), #[0-9a-f]{6}\)", one) for one in colours}
        assert None not in variables, colours
        assert {one[1] for one in variables if one} <= OF_THE_PAGE | {*on_dark()}

    def test_lines_and_bars_are_seen_on_both(self) -> None:
        """A contrast of 3 at least, as WCAG asks of graphics; 4.5 for the names of sides."""
        dark = on_dark()
        light: dict[str, str] = {}
        for name in NAMES:
            light |= dict(re.findall(r"var\((--c-[\w-]+), (#[0-9a-f]{6})\)", drawn(name)))
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
    def test_no_picture_shows_a_key(self, language: str) -> None:
        """Neither ``macro_recall`` nor ``@2``, in any picture that is written down."""
        pictures = recorder.read(f"plots.{language}.txt")
        del pictures["budgets by a function"]  # whose axis names the function
        assert len(pictures) > 80
        for name, told in pictures.items():
            assert not re.search(r"@(\d|all)|[a-z]_[a-z]", told), name

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
