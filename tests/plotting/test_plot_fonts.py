"""Hangul in plots, with and without a font that has it."""

import warnings

import pytest
from golden.plot_samples import evaluated
from matplotlib import font_manager, pyplot

from krag_eval import KragEvalWarning
from krag_eval.plotting import fonts, metric_bars


@pytest.fixture
def no_korean_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what is installed, as far as matplotlib is told."""
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [
        font for font in font_manager.fontManager.ttflist if font.name.startswith("DejaVu")
    ])  # fmt: skip
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *_: [])


@pytest.fixture
def one_korean_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for a font with Hangul: any letter is said to be in it."""
    real = fonts._without_glyph
    monkeypatch.setattr(fonts, "_known", lambda: ["NanumGothic"])
    monkeypatch.setattr(
        fonts,
        "_without_glyph",
        lambda letters, families: set() if "NanumGothic" in families else real(letters, families),
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("one_korean_font")
def test_an_installed_font_is_added():
    """To the texts that need it, behind the font they have; the others stay as they are."""
    _, ax = pyplot.subplots()
    ax.set(title="검색", xlabel="Retrieval")
    ax.set_yticks([0], ["재현율"])
    before = ax.xaxis.label.get_fontfamily()
    fonts.make_readable(ax)
    assert ax.title.get_fontfamily() == [*before, "NanumGothic"]
    assert ax.get_yticklabels()[0].get_fontfamily()[-1] == "NanumGothic"
    assert ax.xaxis.label.get_fontfamily() == before


@pytest.mark.usefixtures("no_korean_font")
def test_without_a_font_there_is_one_warning():
    """However many texts there are; it says what to install, and points to the caller."""
    with pytest.warns(KragEvalWarning, match=r"설치된 글꼴로는 .*fonts-nanum") as caught:
        metric_bars(evaluated(), language="ko")
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.usefixtures("no_korean_font")
def test_matplotlib_has_nothing_to_add():
    """It would warn of every letter when the picture is drawn, fifty times over."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        ax = metric_bars(evaluated(), language="ko")
        ax.figure.canvas.draw()
    assert [one.category for one in caught] == [KragEvalWarning]


@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("no_korean_font")
def test_without_hangul_there_is_none():
    """Nobody is bothered about letters that are not there."""
    metric_bars(evaluated())


def test_fonts_installed_since_are_found(monkeypatch: pytest.MonkeyPatch):
    """Matplotlib keeps its list in a file; a font installed afterwards is added by its file."""
    added: list[str] = []
    monkeypatch.setattr(
        font_manager, "findSystemFonts", lambda *_: ["/fonts/NanumGothic.ttf", "/fonts/Other.ttf"]
    )
    monkeypatch.setattr(font_manager.fontManager, "addfont", added.append)
    fonts._installed_since()
    assert added == ["/fonts/NanumGothic.ttf"]


@pytest.mark.parametrize(
    "name",
    [
        "NanumGothic.ttf",
        "NanumBarunGothic.ttf",
        "NanumSquareR.ttf",
        "NotoSansCJK-Regular.ttc",
        "NotoSerifCJK-Regular.ttc",
        "NotoSansCJKjp-Regular.otf",
        "NotoSansKR-Regular.otf",
        "malgun.ttf",
        "AppleGothic.ttf",
        "AppleSDGothicNeo.ttc",
        "Pretendard-Regular.otf",
    ],
)
def test_files_of_korean_fonts(name: str, monkeypatch: pytest.MonkeyPatch):
    """As they are called on Debian, Windows and macOS."""
    added: list[str] = []
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda *_: [f"/fonts/{name}"])
    monkeypatch.setattr(font_manager.fontManager, "addfont", added.append)
    fonts._installed_since()
    assert added == [f"/fonts/{name}"]


def test_the_first_picture_is_drawn_as_the_next_one(monkeypatch: pytest.MonkeyPatch):
    """What the list has is used if it does; else all there is, the best of them first."""
    known = ["NanumGothic"]
    monkeypatch.setattr(fonts, "_known", lambda: list(known))
    monkeypatch.setattr(fonts, "_installed_since", lambda: ["Noto Sans CJK KR", *known])
    lacking = {"NanumGothic": {"ㆍ"}, "Noto Sans CJK KR": set()}
    monkeypatch.setattr(
        fonts, "_without_glyph", lambda letters, families: {*letters} & lacking[families[0]]
    )
    assert fonts._families([{"가"}, {"나"}]) == ["NanumGothic"]
    assert fonts._families([{"가"}, {"ㆍ"}]) == ["Noto Sans CJK KR", "NanumGothic"]
    assert fonts._families([]) == []


def test_dollar_signs_are_no_formula():
    """Unbalanced or with a backslash, they would stop the drawing."""
    figure, ax = pyplot.subplots()
    ax.set_title(r"cost $\frac{ and $5")
    fonts.make_readable(ax)
    figure.canvas.draw()
