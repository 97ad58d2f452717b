"""Texts of a picture seen whole: a font for Hangul, lines for what is wider than the picture."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from krag_eval.core import N_, _, warn, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Where a line may end: not within "k = 5".
_SPACES = re.compile("(?<!=) (?!=)")
# Width of a column of text, in sizes of its font.
_EM = 0.52

#: Families with Hangul, best first, by how their names begin. Of a collection file matplotlib sees
#: the first font alone, which in Noto's is the Japanese one; it has all of Hangul too.
KOREAN_FONTS = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleSDGothicNeo",
    "AppleGothic",
    "Pretendard",
    "NanumBarunGothic",
    "NanumSquare",
    "Noto Sans CJK",
    "Noto Serif CJK",
    "Noto Serif KR",
)
# How their files are called.
_FILES = ("malgun", *(name.replace(" ", "").lower() for name in KOREAN_FONTS))

NO_FONT = N_("No installed font can show {}, which will appear as empty boxes.")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def make_readable(ax: Axes) -> None:
    """Let texts be seen whole: a font for Hangul, lines for what is wider than the picture.

    No name is taken for a formula. Where no font has Hangul, matplotlib's own warnings, one for
    every letter, are kept back from then on.

    Warns:
        KragEvalWarning: If no installed font has the letters.
    """
    from matplotlib.text import Text

    texts = [one for one in ax.findobj(Text) if isinstance(one, Text)]
    _fold_names(ax, texts)
    lacking: dict[Any, set[str]] = {}
    for text in texts:
        text.set_parse_math(False)  # a "$" in a name is a dollar sign
        letters = _without_glyph(_HANGUL.findall(text.get_text()), text.get_fontfamily())
        if letters:
            lacking[text] = letters
    families = _families(list(lacking.values()))
    for text, letters in list(lacking.items()):
        if family := _covering(letters, families):
            text.set_fontfamily([*text.get_fontfamily(), family])
            del lacking[text]
    if lacking:
        _warn(set().union(*lacking.values()))


def _families(several: Sequence[set[str]]) -> list[str]:
    """Return the fonts to choose from for texts of these letters: those in matplotlib's list.

    Where they do not do, those installed since are added before any is chosen: the next picture,
    which finds them in the list, is to look the same.
    """
    families = _known() if several else []
    if all(_covering(letters, families) for letters in several):
        return families
    return _installed_since()


def _covering(letters: set[str], families: Iterable[str]) -> str | None:
    """Return the first font that has all of the letters."""
    return next((one for one in families if not _without_glyph(letters, [one])), None)


def _fold_names(ax: Axes, texts: Iterable[Text]) -> None:
    """Break the title and the name of the axis below into lines that fit beside the labels.

    matplotlib wraps texts too, but not before it knows the layout, which depends on them.
    """
    labels = [label.get_text() for label in ax.get_yticklabels()]
    lines = [line for label in labels for line in label.split("\n")]
    beside = _EM * 10 * max(map(width_of, lines), default=0) + (20 if ax.get_ylabel() else 0) + 12
    # Before the layout is known, an axes takes 0.775 of its share of the figure.
    room = 72 * ax.bbox.width / ax.figure.dpi / 0.775 - beside
    shown = {ax.get_title(loc="left"), ax.get_xlabel()}
    for text in [one for one in texts if one.get_text() in shown]:
        text.set_text(_folded(text.get_text(), room / (float(text.get_fontsize()) * _EM)))


def _folded(text: str, width: float) -> str:
    r"""Break lines that are wider than so many columns: before a bracket if that does, or anywhere.

    >>> _folded("Macro recall at k = 5 (28 queries)", 22), _folded("Macro recall at k = 5", 18)
    ('Macro recall at k = 5\n(28 queries)', 'Macro recall at\nk = 5')
    """
    lines: list[str] = []
    for line in text.split("\n"):
        head, bracket, rest = line.rpartition(" (")
        if width_of(line) <= width:
            lines.append(line)
        elif bracket and max(width_of(head), width_of(rest) + 1) <= width:
            lines += [head, f"({rest}"]
        else:
            lines += _filled(_SPACES.split(line), width)
    return "\n".join(lines)


def _filled(words: Iterable[str], width: float) -> list[str]:
    lines: list[str] = []
    for one in words:
        if lines and width_of(f"{lines[-1]} {one}") <= width:
            lines[-1] += f" {one}"
        else:
            lines.append(one)
    return lines


def _warn(letters: set[str]) -> None:
    shown = "".join(sorted(letters)[:6]) + ("…" if len(letters) > 6 else "")
    fix = _(
        'Install a Korean font ("apt-get install fonts-nanum" or "fonts-noto-cjk" on Debian, '
        "Ubuntu and Colab; Malgun Gothic comes with Windows, Apple SD Gothic Neo with macOS) and "
        "draw again"
    )
    warn(_(NO_FONT).format(shown), fix)
    # It has been said, and once is enough.
    warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)


def _known() -> list[str]:
    """Return the Korean fonts that matplotlib has in its list."""
    from matplotlib import font_manager

    known = sorted({font.name for font in font_manager.fontManager.ttflist})
    best = (name for start in KOREAN_FONTS for name in known if name.startswith(start))
    return list(dict.fromkeys(best))


def _installed_since() -> list[str]:
    """Return the Korean fonts installed since matplotlib made its list, which it keeps in a file.

    Looking takes a moment, and is done only where letters would be missing.
    """
    from matplotlib import font_manager

    before = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted({*font_manager.findSystemFonts()} - before):
        if os.path.basename(path).lower().startswith(_FILES):
            font_manager.fontManager.addfont(path)
    return _known()


def _without_glyph(letters: Iterable[str], families: Iterable[str]) -> set[str]:
    """Return the letters that none of the fonts has."""
    from matplotlib import font_manager

    lacking = set(letters)
    for family in families if lacking else ():
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        font = font_manager.get_font(path)
        lacking = {letter for letter in lacking if not font.get_char_index(ord(letter))}
    return lacking
