"""JSON read strictly: what tools read differently is refused, in words that say what to do.

``NaN``, ``Infinity``, numbers too large for a float, a key given twice in one object, half of a
surrogate pair and nesting without end are not read.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from krag_eval._errors import Blamed, Place

__all__ = [
    "kind_of",
    "names_of",
    "object_of",
    "parsed",
]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST_NAME = 40
_MOST_NAMES = 10


def object_of(text: str, place: Place, expected: str) -> dict[str, Any]:
    """Return the JSON object that stands on one line.

    Args:
        text: The line.
        place: Where it stands.
        expected: The object in words, for the message, such as ``'an object with "_id"'``.

    Raises:
        DatasetError: If the line is anything else.

    >>> object_of('{"_id": "d1"}', Place("corpus.jsonl", 1), "an object")
    {'_id': 'd1'}
    """
    try:
        content = parsed(text, place)
    except json.JSONDecodeError as error:
        raise place.error(_not_json(text, error)) from error
    if not isinstance(content, dict):
        raise place.error(
            f"expected {expected}, got {kind_of(content)}; write one object per line, without a "
            "list around them."
        )
    return content


def parsed(text: str, place: Blamed) -> Any:
    """Return a JSON text's value; a syntax error is left to whoever knows the layout.

    Raises:
        json.JSONDecodeError: If the text is not JSON.
        DatasetError: If it is, but does not mean one thing.
    """
    try:
        content = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise place.error("nested too deeply; expected lists of documents; flatten it.") from error
    except UnicodeEncodeError as error:
        raise place.error(
            f"a string holds half of a surrogate pair ({error.object[error.start]!r}), which is "
            "not a character; expected whole characters; an emoji was probably cut in two."
        ) from error
    except ValueError as error:  # from the hooks below, or a number too long for Python
        raise place.error(f"not usable JSON: {error}.") from error
    return content


def kind_of(value: Any) -> str:
    """Name a JSON value by its kind, in JSON's words.

    >>> kind_of(None), kind_of(["a"])
    ('null', 'a list')
    """
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}
    other = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return kinds.get(type(value), other)


def names_of(content: Mapping[str, Any]) -> str:
    """List the keys of an object, for a message.

    >>> names_of({"id": 1, "text": "a"})
    '"id", "text"'
    """
    names = [f'"{str(name)[:_LONGEST_NAME]}"' for name in list(content)[:_MOST_NAMES]]
    more = len(content) - _MOST_NAMES
    return (", ".join(names) or "none") + (f" and {more} more" if more > 0 else "")


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    spread = text.strip() in ("{", "[")
    remedy = "correct the line"
    if spread:
        remedy = (
            "put each object on one line (jq -c does); judgements and runs, {topic: {document: "
            "number}}, are for read_trec(qrels, run)"
        )
    return (
        f"not valid JSON: {error.msg} (column {error.colno}); expected one complete object per "
        f"line; {remedy}."
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(
            f"the key {twice[:_LONGEST_NAME]!r} is given twice in one object; keep one of them"
        )
    return content


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value; write null instead")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:_LONGEST_NAME]} is too large for a number; write null instead")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
)
