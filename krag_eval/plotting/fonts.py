"""Fonts: letting Hangul in a picture be seen, and names be read as they are written.

This room knows which installed fonts have which letters. It never changes matplotlib's settings:
a font is chosen for single texts of one picture.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from krag_eval._errors import warn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["KOREAN_FONTS", "NO_KOREAN_FONT", "make_readable"]

#: Fonts with Hangul, best first. Of a collection file matplotlib sees the first font alone, which
#: in Noto's is the Japanese one; it has all of Hangul too.
KOREAN_FONTS = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "Noto Sans CJK JP",
)

#: How the warning begins.
NO_KOREAN_FONT = "No installed font can show"

_FILES = re.compile(
    r"(NotoSansCJK-Regular|NotoSansCJKkr-Regular|NotoSansKR|NanumGothic|malgun|AppleSDGothicNeo)"
    r".*\.(ttf|otf|ttc)$",
    re.IGNORECASE,
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def make_readable(ax: Axes) -> None:
    """Give texts with Hangul a font that shows it, and let no name be taken for a formula.

    Warns:
        KragEvalWarning: If no installed font has the letters.
    """
    from matplotlib.text import Text

    lacking: dict[Any, set[str]] = {}
    for text in ax.findobj(Text):
        text.set_parse_math(False)  # a "$" in a name is a dollar sign
        letters = _without_glyph(_HANGUL.findall(text.get_text()), text.get_fontfamily())
        if letters:
            lacking[text] = letters
    for look in (_known, _installed_since) if lacking else ():
        for family in look():
            for text in [one for one in lacking if not _without_glyph(lacking[one], [family])]:
                text.set_fontfamily([*text.get_fontfamily(), family])
                del lacking[text]
    if lacking:
        _warn(set().union(*lacking.values()))


def _warn(letters: set[str]) -> None:
    shown = "".join(sorted(letters)[:6]) + ("…" if len(letters) > 6 else "")
    warn(
        f"{NO_KOREAN_FONT} {shown}, which will appear as empty boxes. Install a Korean font "
        '("apt-get install fonts-nanum" or "fonts-noto-cjk" on Debian, Ubuntu and Colab; Malgun '
        "Gothic comes with Windows, Apple SD Gothic Neo with macOS) and draw again."
    )


def _known() -> list[str]:
    """Return the Korean fonts that matplotlib has in its list."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in KOREAN_FONTS if name in known]


def _installed_since() -> list[str]:
    """Return the Korean fonts installed since matplotlib made its list, which it keeps in a file.

    Looking takes a moment, and is done only where letters would be missing.
    """
    from matplotlib import font_manager

    before = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted({*font_manager.findSystemFonts()} - before):
        if _FILES.match(os.path.basename(path)):
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
