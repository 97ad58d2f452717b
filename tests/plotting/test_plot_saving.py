"""Plots in files and in pages."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from golden.plot_samples import evaluated
from matplotlib import pyplot

from krag_eval.errors import InvalidInput
from krag_eval.plotting import PLOT_FORMATS, inline_svg, metric_bars, save_plot


class TestSavePlot:
    """Pictures in files."""

    @pytest.mark.parametrize("ending", PLOT_FORMATS)
    def test_the_ending_decides(self, tmp_path: Path, ending: str) -> None:
        """The file is what its name says, by its first bytes."""
        path = tmp_path / f"chart{ending.upper()}"
        save_plot(path, lambda ax: metric_bars(evaluated(), ax=ax))
        first = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[ending]
        assert path.read_bytes().startswith(first)

    def test_nothing_stays_open(self, tmp_path: Path) -> None:
        """Pyplot never hears of the figure."""
        save_plot(tmp_path / "chart.png", lambda ax: metric_bars(evaluated(), ax=ax))
        assert not pyplot.get_fignums()

    def test_another_ending_is_refused(self, tmp_path: Path) -> None:
        """The refusal lists what is possible."""
        with pytest.raises(InvalidInput, match=r"\.png, \.svg, \.pdf, got .*chart\.gif"):
            save_plot(tmp_path / "chart.gif", lambda ax: None)

    def test_letters_without_a_font_are_no_matter(self, tmp_path: Path) -> None:
        """Matplotlib would warn of every letter; saving goes on without."""
        save_plot(tmp_path / "chart.png", lambda ax: ax.set_title("\U00012000"))


def bars_as_svg(name: str, language: str = "en") -> str:
    """Draw the sample for a page."""
    return inline_svg(
        lambda ax: metric_bars(evaluated(), ax=ax, language=language),  # type: ignore[arg-type]
        name,
        title="Metrics & more",
    )


def ids(svg: str) -> set[str]:
    """Return every id."""
    return set(re.findall(r'\bid="([^"]*)"', svg))


class TestInlineSvg:
    """An element for a page that holds several."""

    def test_it_is_well_formed(self) -> None:
        """One element, with a title for those who listen to it."""
        root = ET.fromstring(bars_as_svg("a"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root[0].text == "Metrics & more"
        assert root.attrib["viewBox"]

    def test_ids_are_unique_in_a_page(self) -> None:
        """Two pictures of the same result share none, and references stay within."""
        first, second = bars_as_svg("a"), bars_as_svg("b")
        assert ids(first)
        assert not ids(first) & ids(second)
        used = re.findall(r'(?:href="#|url\(#)([^")]*)', first)
        assert used
        assert set(used) <= ids(first)

    def test_nothing_reaches_beyond_it(self) -> None:
        """No style sheet, no script, no metadata, nothing from the network."""
        svg = bars_as_svg("a")
        assert not re.search(r"<(style|script|metadata|image|foreignObject)", svg)
        assert set(re.findall(r'href="(.)', svg)) <= {"#"}

    def test_the_same_drawing_gives_the_same_characters(self) -> None:
        """No dates, no random ids."""
        assert bars_as_svg("a") == bars_as_svg("a")

    def test_text_stays_text(self) -> None:
        """It can be read and found, with or without a Korean font where it is drawn."""
        texts = [e.text for e in ET.fromstring(bars_as_svg("a", "ko")).iter() if e.text]
        assert "재현율" in texts

    def test_names_are_text_too(self) -> None:
        """Markup in a name is shown, and an id in it stays as it is."""
        name = '<script>alert(1)</script> id="x" &amp;'
        svg = inline_svg(lambda ax: ax.set_title(name), "a", title="</title><script>")
        root = ET.fromstring(svg)
        assert name in [element.text for element in root.iter()]
        assert "<script" not in svg

    def test_pyplot_never_hears_of_it(self) -> None:
        """Nothing stays open."""
        bars_as_svg("a")
        assert not pyplot.get_fignums()
