"""A text as its reader sees it: without HTML, Markdown and hyphens at line ends.

The same passage is plain text in one place and markup in another. What is markup is decided from
the text alone, never from a vocabulary or from the text it is compared with, and only where little
else can be meant; the rest stays. Tokenizers and matchers read texts through :func:`plain`.

Every rule takes time in proportion to the text, whatever it holds: repeats are possessive or end
at the character that would begin the next attempt.
"""

from __future__ import annotations

import html
import re
import unicodedata
from html.entities import html5

# https://html.spec.whatwg.org/multipage/indices.html#elements-3 and, of the same standard,
# https://html.spec.whatwg.org/multipage/obsolete.html#non-conforming-features
# Elements that format a part of a word as well as a whole one: nothing replaces them.
_INLINE = frozenset(
    (  # noqa: SIM905 - a list literal would take one line for each
        "a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd mark "
        "nobr q s samp small span strike strong sub sup time tt u var wbr"
    ).split()
)
# The others separate words; of these, "br" is a line break.
_SEPARATING = frozenset(
    (  # noqa: SIM905 - a list literal would take one line for each
        "address applet area article aside audio base basefont bgsound blockquote body br "
        "button canvas caption center col colgroup datalist dd details dialog dir div dl dt "
        "embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head "
        "header hgroup hr html iframe image img input isindex keygen label legend li link "
        "listing main map marquee math menu menuitem meta meter multicol nav nextid noembed "
        "noframes noscript object ol optgroup option output p param picture plaintext pre "
        "progress rb rp rt rtc ruby script search section select slot source spacer style "
        "summary svg table tbody td template textarea tfoot th thead title tr track ul video "
        "xmp"
    ).split()
)

# A tag has attributes with values, or those of HTML that need none: "a <b and c> d" has no tag.
_TAG = re.compile(
    r"""
    <(/?)([a-zA-Z][a-zA-Z0-9]*+)
    (?:[\s/]++(?:
        [^\s"'<>/=]++ \s*+ = \s*+ (?:"[^"<]*+" | '[^'<]*+' | [^\s"'<>]++)
      | (?ai:allowfullscreen|async|autofocus|autoplay|checked|compact|controls|declare|default|defer
        |disabled|formnovalidate|hidden|inert|ismap|itemscope|loop|multiple|muted|nohref|nomodule
        |noresize|noshade|novalidate|nowrap|open|playsinline|readonly|required|reversed|selected)
        (?=[\s/>])
    ))*+
    [\s/]*+>
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DOCTYPE = re.compile(r"(?ai:<!doctype)[^<>]*+>")

# "&" and a name or number; the semicolon is a must, or "AT&T" and "?a=1&copy=2" would change.
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")

# Of "[text](target 'title')" all from the closing bracket on. One pair of parentheses may stand
# inside another, as in addresses of Wikipedia.
_TARGET = re.compile(
    r"""
    \]\(\s*+ <?((?:[^\s()<>]++|\([^\s()<>]*+\))*+)>?
    (?:\s++(?:"[^"\n]*+"|'[^'\n]*+'))? \s*+\)
    """,
    re.VERBOSE,
)
# "[label]: target 'title'" on a line of its own.
_DEFINITION = re.compile(
    r"""
    ^(\ {0,3}\[[^\[\]\n]++\]):[ \t]*+ <?([^\s<>]++)>?
    (?:[ \t]++(?:"[^"\n]*+"|'[^'\n]*+'|\([^()\n]*+\)))? [ \t]*+$
    """,
    re.VERBOSE | re.MULTILINE,
)
# What tells an address from an index or a remark: "[USD](2023)" has no target.
_ADDRESS = re.compile(r"[./:#?]|^$")

# A pair of equal marks on one line, tight around what they mark.
_MARKED = {
    "`": re.compile(r"(?<![`\\])(`{1,3}+)([^`\n]++)\1(?!`)"),
    "*": re.compile(r"(?<![*\\])(\*{1,3}+)(?!\s)([^*\n]++)(?<!\s)\1(?!\*)"),
    "~": re.compile(r"(?<![~\\])(~~)(?![~\s])([^~\n]++)(?<!\s)\1(?!~)"),
}

_BREAKS = "\n\r\v\f\x85\u2028\u2029"
_NEXT_LINE = rf"[ \t]*+(?:\r\n|[{_BREAKS}])[ \t]*+"
# One pattern for each, because what begins with a single character is found much faster.
_HYPHENATED = {
    hyphen: re.compile(rf"{hyphen}(?=[ \t]*+[{_BREAKS}])(?<=[^\W\d_].){_NEXT_LINE}([^\W\d_])")
    for hyphen in ("-", "\u00ad", "\u2010")
}

# Besides the comma: apostrophes, spaces that do not break, the Arabic and the full-width comma.
_RARE_SEPARATORS = "\u00a0\u2007\u2009\u202f\u066c\uff0c"
_SEPARATORS = f",'\u2019{_RARE_SEPARATORS}"
# Groups of three, as in 1,234,567; after a point at least two of them, as 1.234 is a decimal number
# elsewhere; and those of India, as in 12,34,567. Not where a digit or group stands on either side.
_GROUPED = re.compile(
    rf"""
    \d(?<!\d\d)(?<!\d[{_SEPARATORS}.]\d)(?<!0)
    (?:\d{{0,2}}([{_SEPARATORS}])\d{{3}}(?:\1\d{{3}})*+(?!\1?\d)
      |\d{{0,2}}\.\d{{3}}(?:\.\d{{3}})++(?!\.?\d)
      |\d?(?:,\d\d(?=,))++,\d{{3}}(?!,?\d))
    """,
    re.VERBOSE,
)
# Soon found, and all but tell that there are numbers in groups.
_GROUPS_BY = {
    ",": re.compile(r",\d\d"),
    "'": re.compile(r"'\d{3}"),
    ".": re.compile(r"\.\d{3}\.\d{3}"),
    "\u2019": re.compile("\u2019\\d{3}"),
}

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
# A day as Korean writes it, 2024. 9. 30., whichever of its spaces are lost.
_DAY = re.compile(
    r"(?<![\d.])((?:19|20)\d\d)\.\s*+(0?[1-9]|1[0-2])\.\s*+(0?[1-9]|[12]\d|3[01])(?!\.?\d)"
)

# Numbers in circles and, of them, those beside another number, with which they make none.
_CIRCLED = "[\u2460-\u2473\u24ea\u3251-\u325f\u32b1-\u32bf]"
_BESIDE_CIRCLE = re.compile(rf"(?<=\d)(?={_CIRCLED})|(?<={_CIRCLED})(?=\d|{_CIRCLED})")


_RARE = re.compile(f"[{_RARE_SEPARATORS}]|{_CIRCLED}")

# What stands beside words: how Hanja or Kanji behind it are read, and what numbers a paragraph.
_READ_AS = re.compile(
    r"[(\uff08](?:(?<=[\uac00-\ud7a3].)[\u3400-\u9fff]+|(?<=[\u3400-\u9fff].)[\u3040-\u30ff]+)[)\uff09]"
)
_LIST_MARK = (
    r"[ \t]*+(?:(?:\(?\d{1,2}\)|\(?[a-z]\)|\(?[가나다라마바사아자차카타파하][.)])[ \t]"
    r"|[\u2460-\u2473\u3260-\u327b])[ \t]*+(?=[^\W\d_])"
)
_AT_START, _IN_LINES = re.compile(_LIST_MARK), re.compile(f"\n{_LIST_MARK}")


def plain(text: str) -> str:
    r"""Return a text as its reader sees it, with numbers in one piece.

    - Tags of HTML elements and their attributes go, and so do comments. Formatting (``<b>``,
      ``<a>``, ``<sup>``, …) leaves nothing behind, ``<br>`` a line break, any other tag a space.
      Anything else stays: ``a < b``, ``<unk>``, ``a <b and c> d``. So does what is
      between ``<script>`` or ``<style>`` and its end.
    - Of Markdown, targets of links and images and their titles go; their texts stay. Marks in
      pairs (``*``, ``**``, ``***``, backticks, ``~~``) go, so that ``**Seoul**-based`` is as
      without them, unless letters or digits stand on both sides of the pair, as in ``2*3*4``.
    - Entities with a semicolon are decoded, once: ``&amp;lt;`` is ``&lt;``.
    - A letter, a hyphen (soft or not), one line break and a lower-case letter become the two
      letters.
    - Groups of digits are joined: ``1,234,567``, ``1'234'567``, ``12,34,567``, ``1.234.567``, also
      those with no-break or thin spaces; a plain space separates numbers. ``1.234`` and ``0,123``
      stay, being decimal numbers somewhere; so do ``1,2,3`` and ``2019,2020``.
    - A number in a circle, which numbers paragraphs, stands apart from others: ``①2024`` is
      ``① 2024``. What numbers a line goes: ``1)``, ``(a)``, ``가.``, ``①``.
    - In brackets, Hanja behind Hangul go, as of ``해지(解止)``, and Kana behind Kanji, as of
      ``東京(とうきょう)``.

    >>> plain("<td>Total</td><td>&euro; 1,234,567</td>").split()
    ['Total', '€', '1234567']
    >>> plain("See **the [statement](https://example.org/a)** of the inter-\nnational bank")
    'See the [statement of the international bank'
    """
    text = _as_seen(text)
    if not text.isascii() and ("(" in text or "\uff08" in text):
        text = _READ_AS.sub("", text)
    if mark := _AT_START.match(text):
        text = text[mark.end() :]
    return _IN_LINES.sub("\n", text) if "\n" in text else text


def _as_seen(text: str) -> str:
    """Return a text without markup, with numbers in one piece."""
    if not text.isascii():
        # "≯" and "ñ" may be written with a combining mark, which does not end a tag.
        text = unicodedata.normalize("NFC", text)
    if "<" in text:
        text = _without_tags(text)
    if "]" in text:
        text = _without_targets(text)
    for mark, pair in _MARKED.items():
        if mark in text:
            text = pair.sub(_unmarked, text)
    if "&" in text:
        text = _ENTITY.sub(_decoded, text)
    is_rare = not text.isascii() and _RARE.search(text) is not None
    if is_rare:
        text = _BESIDE_CIRCLE.sub(" ", text)
    text = _with_whole_words(text)
    if is_rare or any(by in text and hint.search(text) for by, hint in _GROUPS_BY.items()):
        text = _GROUPED.sub(lambda groups: "".join(filter(str.isdigit, groups[0])), text)
    return text


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, in reading order, so that equal numbers are equal texts.

    A number is a run of digits, wherever it stands, and the further runs that points join to it:
    ``2.5`` and ``1.2.3`` are one number each. Groups of digits are joined first, and markup does
    not count (see :func:`plain`). Zeros that do not change the value are dropped, ``05`` is ``5``
    and ``7.50`` is ``7.5``, but not where there are several points, as in ``30.09.2024``. A comma
    that joins no groups separates numbers: ``2,5`` holds ``2`` and ``5``. Signs, percent signs and
    units are not part of a number: ``-5 %`` holds ``5``. A date is the numbers in it, also with
    points and the year first: ``2024.9.30`` is ``2024. 9. 30``. Numbers spelled in letters are
    none.

    >>> numbers_in("In Q3 2024 revenue grew 2.50% to $1,234,567 (2024-09-30)")
    ['3', '2024', '2.5', '1234567', '2024', '9', '30']
    """
    text = _as_seen(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _DAY.sub(r"\1 \2 \3", text)
    return [_by_value(number) for number in _NUMBER.findall(text)]


def _by_value(number: str) -> str:
    whole, _, decimals = number.partition(".")
    if "." in decimals:
        return number
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def _without_tags(text: str) -> str:
    end = text.rfind("-->") + 3
    if end > 2:
        # No comment begins after the last end of one; looking for it there would never stop.
        text = _COMMENT.sub(" ", text[:end]) + text[end:]
    return _TAG.sub(_tag_replaced, _DOCTYPE.sub(" ", text))


def _tag_replaced(tag: re.Match[str]) -> str:
    name = tag[2].lower()
    if name in _INLINE:
        return ""
    if name in _SEPARATING:
        return "\n" if name == "br" else " "
    return tag[0]


def _without_targets(text: str) -> str:
    if "](" in text:
        text = _TARGET.sub(lambda link: "" if _ADDRESS.search(link[1]) else link[0], text)
    if "]:" in text:
        text = _DEFINITION.sub(lambda line: line[1] if _ADDRESS.search(line[2]) else line[0], text)
    return text


def _unmarked(pair: re.Match[str]) -> str:
    text, start, end = pair.string, pair.start(), pair.end()
    inside_a_word = text[start - 1 : start].isalnum() and text[end : end + 1].isalnum()
    return pair[0] if inside_a_word else pair[2]


def _decoded(entity: re.Match[str]) -> str:
    if entity[0][1] == "#":
        return html.unescape(entity[0])
    # Not html.unescape, which decodes the beginning of an unknown name: "&notable;" is "¬able;".
    return html5.get(entity[0][1:], entity[0])


def _with_whole_words(text: str) -> str:
    """Join words that were hyphenated at the end of a line."""
    for hyphen, pattern in _HYPHENATED.items():
        if hyphen in text:
            text = pattern.sub(lambda one: one[1] if one[1].islower() else one[0], text)
    return text
