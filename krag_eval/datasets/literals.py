"""Python values written as text, the way pandas leaves lists in a CSV: read as data, never run.

What is read is what ``repr`` writes of lists, tuples, dicts, strings, numbers, ``True``, ``False``
and ``None``. Python's own reader is not used: it joins strings that only lack a comma, as numpy
prints them, and has no bound on nesting. This room must not know what a value means.
"""

from __future__ import annotations

import math
import re
from typing import Any

from krag_eval.datasets.base import Blamed, DatasetError

__all__ = ["literal_in"]

_MAX_DEPTH = 100
_LONGEST_NUMBER = 400
_NAMES = {"True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b",
            "f": "\f", "v": "\v"}  # fmt: skip
_SPACE = re.compile(r"\s*+")
# Possessive, so that a string without an end is given up at once.
_STRING = {
    "'": re.compile(r"'([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'", re.DOTALL),
    '"': re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"', re.DOTALL),
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_NAME = re.compile(r"[^\W\d]\w*+")
_CLOSING = {"[": "]", "(": ")", "{": "}"}


def literal_in(text: str, place: Blamed) -> Any:
    r"""Return the value that a text spells in Python.

    Args:
        text: The text, such as ``"['a', 'b']"``.
        place: Where it stands.

    Raises:
        DatasetError: If it spells anything but data, or is nested more than 100 deep; the message
            says at which character, and knows what numpy, pandas and LangChain print.

    >>> from krag_eval.datasets.base import Place
    >>> literal_in("['a', {'page_content': 'It\\'s b', 'id': 7}]", Place("qa.csv", 2))
    ['a', {'page_content': "It's b", 'id': 7}]
    """
    return _Reader(text, place).only_value()


class _Reader:
    """One text, and how far it has been read."""

    def __init__(self, text: str, place: Blamed) -> None:
        self.text, self.place, self.at = text, place, 0

    def only_value(self) -> Any:
        value = self.value(0)
        if self.next():
            raise self.error("there is more after its end")
        return value

    def next(self) -> str:
        """Skip white space, and return the character after it."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def error(self, problem: str, remedy: str = "") -> DatasetError:
        advice = remedy or 'write a list of strings, as Python or JSON does: ["…", "…"]'
        return self.place.error(
            f"cannot be read as a list: {problem} at character {self.at + 1}; {advice}."
        )

    def value(self, depth: int) -> Any:
        first = self.next()
        if first in ("'", '"'):
            return self.string(first)
        if first and first in "[({":
            if depth == _MAX_DEPTH:
                raise self.error(f"it is nested more than {_MAX_DEPTH} deep", "flatten it")
            return self.pairs(depth) if first == "{" else self.values(first, depth)
        number = _NUMBER.match(self.text, self.at)
        return self.number(number) if number else self.named(first)

    def string(self, quote: str) -> str:
        found = _STRING[quote].match(self.text, self.at)
        if found is None:
            raise self.error("a string has no end")
        body = found[1]
        if "\\" in body:
            body = _ESCAPE.sub(self.unescaped, body)
        self.at = found.end()
        if self.next() in ("'", '"'):
            raise self.error(
                "two strings stand side by side without a comma, as numpy prints arrays",
                "save lists, with column.map(list), or the table as JSON lines or Parquet",
            )
        return body

    def unescaped(self, found: re.Match[str]) -> str:
        digits = found[1] or found[2] or found[3]
        if digits is None:
            if found[4] not in _ESCAPES:
                raise self.error(f"a string here holds the unknown escape {found[0]!r}")
            return _ESCAPES[found[4]]
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self.error(f"a string here holds {found[0]}, which is not a character")
        return chr(code)

    def number(self, found: re.Match[str]) -> int | float:
        text = found[0]
        if len(text) > _LONGEST_NUMBER:
            raise self.error("a number is too long")
        digits = text.lstrip("+-")
        whole = digits.isdecimal()
        number = int(text) if whole else float(text)
        if whole and number and digits[0] == "0":
            raise self.error(
                f"the number {text[:40]} begins with 0", "write ids as strings, in quotes"
            )
        if not whole and math.isinf(number):
            raise self.error(f"{text} is too large for a number")
        self.at = found.end()
        return number

    def named(self, first: str) -> Any:
        found = _NAME.match(self.text, self.at)
        name = found[0] if found else ""
        if name in _NAMES:
            self.at += len(name)
            return _NAMES[name]
        if name == "Document":
            raise self.error(
                "a LangChain Document was printed into it",
                "save each document's page_content, or its model_dump() as JSON",
            )
        if name in ("array", "dtype"):
            raise self.error(
                "a numpy array was printed into it",
                "save lists, with column.map(list), or the table as JSON lines or Parquet",
            )
        if self.text.startswith("...", self.at):
            raise self.error(
                "it was cut short when it was printed", "save the values themselves, as JSON lines"
            )
        what = f"the name {name[:40]!r} is no value" if name else f"{first!r} is not expected"
        raise self.error(what if first else "it ends too early")

    def values(self, opening: str, depth: int) -> Any:
        self.at += 1
        found: list[Any] = []
        ended_by_comma = True
        while self.next() != _CLOSING[opening]:
            found.append(self.value(depth + 1))
            ended_by_comma = self.separated(_CLOSING[opening])
        self.at += 1
        # Parentheses around one value, without a comma, make no tuple in Python.
        is_tuple = ended_by_comma or len(found) != 1
        return found if opening == "[" or is_tuple else found[0]

    def pairs(self, depth: int) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while (first := self.next()) != "}":
            if first not in ("'", '"'):
                raise self.error("a key of a dict must be a string")
            key = self.string(first)
            if self.next() != ":":
                raise self.error("a dict needs ':' after each key")
            if key in found:
                raise self.error(f"the key {key[:40]!r} is given twice in one dict")
            self.at += 1
            found[key] = self.value(depth + 1)
            self.separated("}")
        self.at += 1
        return found

    def separated(self, closing: str) -> bool:
        """Step over a comma, if there is one; whether there was."""
        following = self.next()
        if following == ",":
            self.at += 1
            return True
        if following != closing:
            raise self.error(
                f"',' or {closing!r} is expected, got {following!r}"
                if following
                else "it ends too early"
            )
        return False
