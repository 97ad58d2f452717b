"""The checkpoint: a file that gains one line per answer, so that a killed run can go on.

This room knows the file: what it was made for, what it holds, that a kill may have torn its last
line, and that one run at a time may write to it. It must not know how answers come about.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from krag_eval._errors import clipped, warn
from krag_eval._io import lock, naming
from krag_eval.documents import DocumentLike, id_of, metadata_of, text_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from krag_eval.retrievers.asking import Call

__all__ = [
    "Checkpoint",
    "as_json",
    "from_json",
    "purpose_of",
]

_FORMAT = "krag_eval.checkpoint"
_VERSION = 1
_LONGEST_SETTING = 500
_KEY = "checkpoint_key"


def purpose_of(call: Call, texts: Sequence[str], key: str | None = None) -> dict[str, Any]:
    """Return what a checkpoint is made for: these questions, asked of this retriever, this way.

    A retriever is known by the key its user gives it. Without one it is known by its name and its
    plain settings (numbers, texts, ``search_kwargs``); what is inside it, such as an index, cannot
    be told from outside.
    """
    asked = json.dumps(list(texts), ensure_ascii=True).encode("ascii")
    return {
        **({} if key is None else {_KEY: key}),
        "questions": len(texts),
        "fingerprint": hashlib.sha256(asked).hexdigest(),
        "input_key": call.input_key,
        "output_key": call.output_key,
        "retriever": {"name": call.runnable.get_name(), **_plain_settings(call.runnable)},
    }


class Checkpoint:
    """The open file, its answers so far, and the lock on it.

    Args:
        path: The file; made if it is not there.
        purpose: What it is for; see :func:`purpose_of`.

    Raises:
        ValueError: If the file was made for something else, is no checkpoint, or is damaged.
        OSError: If it cannot be opened, or another run is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str], purpose: Mapping[str, Any]) -> None:
        self._path = os.fspath(path)
        self._n_queries: int = purpose["questions"]
        self.answers: dict[int, tuple[list[DocumentLike], float]] = {}
        self._file = _opened(self._path)
        try:
            refusal = "is in use by another run; wait for it, or name another file."
            lock(self._file, f"checkpoint: {self._path} {refusal}")
            self._read(purpose)
        except BaseException:
            self.close()
            raise

    def append(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Add one answer; it is with the operating system when this returns.

        Raises:
            TypeError: If a document's metadata would not come back the same.
            OSError: If it cannot be written.
        """
        line = {"query": position, "seconds": seconds, "documents": as_json(documents)}
        with naming(self._path):
            self._file.write(_line(line))
            self._file.flush()
        self.answers[position] = (documents, seconds)

    def note(self) -> str:
        """Say what is kept, for somebody whose run just ended."""
        return (
            f"{len(self.answers)} of {self._n_queries} answers are kept in {self._path}; the same "
            "call goes on from there."
        )

    def close(self) -> None:
        """Close the file, which frees it for another run."""
        with naming(self._path):
            self._file.close()

    def _read(self, purpose: Mapping[str, Any]) -> None:
        header = _line({"format": _FORMAT, "format_version": _VERSION, **purpose})
        self._file.seek(0)
        first = self._file.readline()
        if not first.endswith(b"\n"):
            # New, or killed while it was made; anything else is somebody's file.
            if not header.startswith(first):
                raise ValueError(_foreign(self._path))
            self._file.truncate(0)
            with naming(self._path):
                self._file.write(header)
                self._file.flush()
            return
        _check_purpose(first, purpose, self._path)
        end = len(first)
        for number, line in enumerate(self._file, 2):
            if not line.endswith(b"\n"):
                break  # torn by a kill; asked again
            self._take(line, number)
            end += len(line)
        self._file.truncate(end)

    def _take(self, line: bytes, number: int) -> None:
        try:
            content = _parsed(line)
            position, seconds = content["query"], content["seconds"]
            documents = from_json(content["documents"])
            if type(position) is not int or not 0 <= position < self._n_queries:
                raise ValueError(f"there is no query {position!r}")
            if position in self.answers:
                raise ValueError(f"query {position} was answered before")
            if type(seconds) is not float or not 0 <= seconds < math.inf:
                raise ValueError(f"{seconds!r} is no number of seconds")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{self._path}:{number}: no answer of a krag_eval checkpoint ({_said(error)}); "
                "delete the line, and its question is asked again."
            ) from error
        self.answers[position] = (documents, seconds)


def _opened(path: str) -> IO[bytes]:
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"checkpoint: there is no directory {folder}; create it first.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"checkpoint: {path} is not a regular file; name another.")
    return open(path, "a+b")


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a character is what some loaders return; it must not end the run.
    return f"{text}\n".encode("utf-8", "surrogatepass")


def _parsed(line: bytes) -> Any:
    return json.loads(line.decode("utf-8", "surrogatepass"))


def _check_purpose(line: bytes, purpose: Mapping[str, Any], path: str) -> None:
    try:
        header = _parsed(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(_foreign(path)) from error
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(_foreign(path))
    if header.get("format_version") != _VERSION:
        raise ValueError(
            f"checkpoint: {path} is of format {header.get('format_version')!r}, and this version "
            f"of krag_eval reads format {_VERSION}; name another file."
        )
    differing = list(_differences(header, purpose))
    if differing:
        raise ValueError(
            f"checkpoint: {path} was made for something else: {'; '.join(differing)}. Its answers "
            "would be wrong here, so nothing was asked; name another file, or delete this one."
            f"{_hint(header, purpose)}"
        )
    _warn_of_new_key(header, purpose, path)


def _hint(header: Mapping[str, Any], purpose: Mapping[str, Any]) -> str:
    """Say what to do where nothing but the retriever's settings differs."""
    if _KEY in header:
        return f" If it is the same retriever, call with {_KEY}={header[_KEY]!r}."
    if list(_differences(header, {**purpose, _KEY: ""})):
        return ""
    return (
        " If that does not change what it answers (a timeout, say), give the retriever a name "
        f'by {_KEY}="…": then this file goes on, and settings are not compared.'
    )


def _warn_of_new_key(header: Mapping[str, Any], purpose: Mapping[str, Any], path: str) -> None:
    """Say that answers are taken over on the user's word alone."""
    differing = list(_differences_of_retrievers(header.get("retriever"), purpose["retriever"]))
    if _KEY in purpose and _KEY not in header and differing:
        warn(
            f"checkpoint: {path} was made without a {_KEY}, for {'; '.join(differing)}; its "
            f"answers are taken as those of {_KEY}={clipped(purpose[_KEY])}."
        )


def _differences(header: Mapping[str, Any], purpose: Mapping[str, Any]) -> Iterator[str]:
    if header.get("questions") != purpose["questions"]:
        yield f"{header.get('questions')} questions, not {purpose['questions']}"
    elif header.get("fingerprint") != purpose["fingerprint"]:
        yield "other questions, or the same in another order"
    for name in ("input_key", "output_key"):
        if header.get(name) != purpose[name]:
            yield f"{name}={header.get(name)!r}, not {purpose[name]!r}"
    if _KEY in header:
        if header[_KEY] != purpose.get(_KEY):
            yield f"{_KEY}={clipped(header[_KEY])}, not {clipped(purpose.get(_KEY))}"
    else:
        # A key given later stands for the settings; another kind of retriever it is not.
        names = ("name",) if _KEY in purpose else None
        yield from _differences_of_retrievers(header.get("retriever"), purpose["retriever"], names)


def _differences_of_retrievers(
    made: Any, asked: Mapping[str, Any], names: Iterable[str] | None = None
) -> Iterator[str]:
    if not isinstance(made, dict):
        yield f"an unknown retriever, not {asked['name']}"
        return
    for name in {**made, **asked} if names is None else names:
        if made.get(name) != asked.get(name):
            what = "the retriever" if name == "name" else f"the retriever's {name}"
            yield f"{what} {clipped(made.get(name))}, not {clipped(asked.get(name))}"


def _said(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line[:200]}"


def _foreign(path: str) -> str:
    return (
        f"checkpoint: {path} is there and no checkpoint of krag_eval, so it is left as it is; name "
        "another file."
    )


def _plain_settings(runnable: Any) -> dict[str, Any]:
    """Return a retriever's settings that look the same in every process and do not grow."""
    settings = {}
    for name in getattr(type(runnable), "model_fields", ()):
        value = getattr(runnable, name, None)
        if name not in ("name", "tags", "metadata") and _is_plain(value):
            settings[name] = value
    return settings


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(one) for key, one in value.items())
    if isinstance(value, str):
        return len(value) <= _LONGEST_SETTING
    return type(value) in (bool, int) or (type(value) is float and math.isfinite(value))


_TAG = "~"

#: Type -> its name in the file, how it is spelled, how it is read.
_SPELLED: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime.datetime: (
        "datetime",
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    bytes: ("bytes", lambda one: base64.b64encode(one).decode("ascii"), base64.b64decode),
    float: ("float", repr, float),  # those JSON cannot write
}
_GATHERED: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_READ: dict[str, Callable[[Any], Any]] = {name: read for name, _, read in _SPELLED.values()}
_REGATHERED: dict[str, type] = {name: kind for kind, name in _GATHERED.items()}


def as_json(documents: Sequence[DocumentLike]) -> list[Any]:
    """Return documents as JSON can hold them; strings stay strings.

    Raises:
        TypeError: If metadata holds what would not come back the same.

    >>> as_json(["At nine."])
    ['At nine.']
    """
    return [
        str(one) if isinstance(one, str) else _document(one, position)
        for position, one in enumerate(documents)
    ]


def from_json(content: Sequence[Any]) -> list[DocumentLike]:
    """Return the documents that :func:`as_json` spelled.

    Raises:
        TypeError, ValueError, KeyError: If it did not.
    """
    return [one if isinstance(one, str) else _read_document(one) for one in content]


def _document(document: DocumentLike, position: int) -> dict[str, Any]:
    metadata = metadata_of(document)
    try:
        return {
            "page_content": text_of(document),
            "metadata": _value(dict(metadata), "metadata") if metadata else {},
            "id": id_of(document),
        }
    except RecursionError as error:
        problem = "metadata is nested too deeply or holds itself"
        raise TypeError(_refusal(position, problem)) from error
    except TypeError as error:
        raise TypeError(_refusal(position, str(error))) from error


def _refusal(position: int, problem: str) -> str:
    return (
        f"checkpoint: the retrieved document [{position}] cannot be kept in a file: {problem}. "
        "Turn it into text or numbers (retriever | a function that does), or leave checkpoint out."
    )


def _read_document(content: Any) -> Document:
    from langchain_core.documents import Document

    metadata = _read_value(content["metadata"])
    return Document(page_content=content["page_content"], metadata=metadata, id=content["id"])


def _value(value: Any, where: str) -> Any:
    """Spell one value; ``where`` names it, should it have no spelling."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return _mapping(value, where)
    if isinstance(value, list):
        return [_value(one, f"{where}[{i}]") for i, one in enumerate(value)]
    kind = type(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind in _SPELLED:
        name, spell, _ = _SPELLED[kind]
        return {_TAG: name, "value": spell(value)}
    if kind in _GATHERED:
        return {_TAG: _GATHERED[kind], "value": [_value(one, f"{where}[…]") for one in value]}
    raise TypeError(f"{where} is a {kind.__module__}.{kind.__qualname__}")


def _mapping(value: dict[Any, Any], where: str) -> Any:
    if all(type(key) is str for key in value) and _TAG not in value:
        return {key: _value(one, f"{where}[{key!r}]") for key, one in value.items()}
    pairs = [
        [_value(key, f"a key of {where}"), _value(one, f"{where}[{key!r}]")]
        for key, one in value.items()
    ]
    return {_TAG: "dict", "value": pairs}


def _read_value(content: Any) -> Any:
    if isinstance(content, list):
        return [_read_value(one) for one in content]
    if not isinstance(content, dict):
        return content
    if _TAG not in content:
        return {key: _read_value(one) for key, one in content.items()}
    name, value = content[_TAG], content["value"]
    if name == "dict":
        return {_read_value(key): _read_value(one) for key, one in value}
    if name in _REGATHERED:
        return _REGATHERED[name](map(_read_value, value))
    return _READ[name](value)
