"""Colours and names that every picture shares: of metrics, of outcomes, on white and dark paper."""

import re
import xml.etree.ElementTree as ET
from functools import cache
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest
from golden import plots, recorder
from golden.plot_samples import evaluated, in_chunks
from matplotlib.colors import to_hex, to_rgb

from krag_eval import METRICS, OfflineRetrievalEvaluator, plotting
from krag_eval.core import averages_of
from krag_eval.plotting import styling
from krag_eval.plotting.styling import DARK, LINES, looks_of

KEYS = list(averages_of(METRICS.values()))
# Of the page: what the colours of outcomes, ink and paper are taken from.
OF_THE_PAGE = {"--ink", "--paper", "--good", "--warn", "--bad"}
WHITE, NEARLY_BLACK = "#ffffff", "#16181d"
FOUND, PARTIAL, MISSED = "#009e73", "#c88200", "#a81020"
# Machado, Oliveira, Fernandes 2009, severity 1: what linear RGB becomes without one kind of cone.
SEEN_WITHOUT = {
    "nothing": np.eye(3),
    "L": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
          [-0.003882, -0.048116, 1.051998]],
    "M": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
          [-0.011820, 0.042940, 0.968881]],
    "S": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
          [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
# Those that one picture may show: light, dark.
TOGETHER = {
    "metrics": [*styling._METRICS.values()][:7],
    "systems": [*styling._SYSTEMS.values()],
    "sides": [styling._OTHERS[name] for name in ("better", "worse", "unsure")],
    "outcomes": None,
}


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


def linear(colour: str) -> np.ndarray:
    """Return the linear RGB of a colour."""
    parts = np.array(to_rgb(colour))
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def cielab(rgb: np.ndarray) -> np.ndarray:
    """Return CIE L*a*b* (D65) of linear RGB."""
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one: str, other: str, lacking: str) -> float:
    """Return the difference ΔE*ab of two colours as seen without a kind of cone."""
    return float(np.linalg.norm(np.subtract(*(
        cielab(SEEN_WITHOUT[lacking] @ linear(colour)) for colour in (one, other)
    ))))  # fmt: skip


def outcomes_on_dark() -> list[str]:
    """Return the colours that a report gives to found, partly found and missed on dark paper."""
    light, dark = re.findall(r"--good: (\S+); --warn: (\S+); --bad: (\S+);", style_of_reports())
    assert light == (FOUND, PARTIAL, MISSED)
    return [*dark]


def style_of_reports() -> str:
    """Return the CSS of all reports."""
    return (files("krag_eval.report") / "templates/style.css").read_text("utf-8")


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

    def test_bars_that_the_axis_names_have_one_colour(self) -> None:
        """Macro averages are dark, micro ones light; so is a distribution, whose title names it."""
        ax = plotting.metric_bars(evaluated([1, 2]), 2)
        micro, macro = ({bar.get_facecolor() for bar in bars} for bars in ax.containers)
        ((*hue, light),), ((*same, full),) = micro, macro
        assert (hue, full, light < 0.5) == (same, 1.0, True)
        assert [one.get_facecolor() for one in ax.get_legend().get_patches()] == [*micro, *macro]
        spread = plotting.metric_distribution(evaluated([1, 2]), "ndcg@2").patches
        assert {one.get_facecolor() for one in spread} == macro

    @pytest.mark.parametrize("lacking", SEEN_WITHOUT)
    @pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
    @pytest.mark.parametrize("group", TOGETHER)
    def test_colours_drawn_together_differ_to_any_eye(self, group, side, lacking) -> None:
        """By a ΔE*ab of 18, eight times what an eye can just tell, with all cones or without one.

        About 2.3 can just be told: Mahy, Van Eycken, Oosterlinck 1994.
        """
        palette = TOGETHER[group] or [
            *zip((FOUND, PARTIAL, MISSED), outcomes_on_dark(), strict=True)
        ]
        colours = [one[side] for one in palette]
        assert min(apart(*two, lacking) for two in combinations(colours, 2)) >= 18


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
