"""The checkpoint: a file that gains one line per answer, so that a killed run can resume.

A header says what the file was made for; a line that a kill tore is dropped, and its question asked
again. One run at a time writes to it.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from langchain_core.documents import Document

from krag_eval.core import (
    Advice,
    DatasetError,
    DocumentLike,
    Fix,
    InvalidType,
    Place,
    _,
    clipped,
    metadata_of,
    naming,
    text_of,
    warn,
)
from krag_eval.core.documents import written_id
from krag_eval.core.files import Purpose

_LONGEST_SETTING = 500
_KEY = "checkpoint_key"
_ANOTHER = "name another file"
_ANOTHER_RETRIEVER = (
    "Its answers would be wrong here, so nothing was asked; name another file, or delete this one"
)
_BY_KEY = (
    "If the settings change no answer (a timeout, say), name the retriever by {}: then this file "
    "is used, and settings are not compared"
)
_SPOKEN = {"fingerprint": "other questions, or the same in another order"}


def n_kept(path: str | os.PathLike[str]) -> int:
    """Return how many answers a file holds, which another process may not have closed."""
    with suppress(OSError):
        return max(0, Path(path).read_bytes().count(b"\n") - 1)  # its first line is the header
    return 0


def note_of(path: str | os.PathLike[str], n_queries: int) -> str:
    """Say what is kept in a file; nothing if nothing."""
    n = n_kept(path)
    return _note(n, n_queries, os.fspath(path)) if n else ""


def _note(n_kept: int, n_queries: int, path: str) -> str:
    return f"{n_kept} of {n_queries} answers are kept in {path}; the same call resumes there."


def purpose_of(
    runnable: Any, how: Mapping[str, Any], texts: Sequence[str], key: str | None = None
) -> Purpose:
    """Return what a checkpoint is made for: these questions, asked of this retriever, this way.

    A retriever is known by the key its user gives it. Without one it is known by its name and its
    plain settings (numbers, texts, ``search_kwargs``); what is inside it, such as an index, cannot
    be seen from outside.
    """
    asked = json.dumps(list(texts), ensure_ascii=True).encode("ascii")
    settings = {
        **({} if key is None else {_KEY: key}),
        "questions": len(texts),
        "fingerprint": hashlib.sha256(asked).hexdigest(),
        **how,
        "retriever": {"name": runnable.get_name(), **_plain_settings(runnable)},
    }
    return Purpose("checkpoint", "krag_eval.checkpoint", 1, settings, _ANOTHER, _SPOKEN)


class Journal:
    """A file that gains lines, so that a killed run can resume; one run at a time writes to it.

    Its first line says what it is for; a line that a kill tore is dropped.

    Args:
        path: The file; made if it is not there.
        purpose: What it is for.

    Raises:
        InvalidInput: If it was made for something else.
        OSError: If it cannot be opened, or another run is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str], purpose: Purpose) -> None:
        self.path, self.purpose = os.fspath(path), purpose
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError(f"{purpose.argument}: {path} is not a regular file; name another.")
        self._file = Path(path).open("a+b")  # noqa: SIM115
        try:
            purpose.lock(self._file, self.path)
            self._read()
        except BaseException:
            self.close()
            raise

    def write(self, line: str) -> None:
        """Add a line; it is with the operating system when this returns."""
        with naming(self.path):
            # Half of a character is what some loaders return; it must not end the run.
            self._file.write(f"{line}\n".encode("utf-8", "surrogatepass"))
            self._file.flush()

    def check(self, header: Mapping[str, Any]) -> None:
        """Refuse a file by what it says of itself."""
        self.purpose.check(header, self.path, self.purpose.fix)

    def take(self, line: bytes, place: Place) -> None:
        """Take a line that is kept."""

    def close(self) -> None:
        """Close the file, which frees it for another run."""
        with naming(self.path):
            self._file.close()

    def _read(self) -> None:
        header = json.dumps(self.purpose.header, ensure_ascii=False, separators=(",", ":"))
        self._file.seek(0)
        first = self._file.readline()
        whole = first.endswith(b"\n")
        if not whole and f"{header}\n".encode("utf-8", "surrogatepass").startswith(first):
            self._file.truncate(0)  # new, or killed while it was made
            self.write(header)
            return
        made = None
        with suppress(ValueError, RecursionError):
            made = json.loads(first.decode("utf-8", "surrogatepass")) if whole else None
        self.check(made if isinstance(made, dict) else {})
        end = len(first)
        for number, line in enumerate(self._file, 2):
            if not line.endswith(b"\n"):
                self._file.truncate(end)  # torn by a kill
                break
            self.take(line, Place(self.path, number))
            end += len(line)


class Checkpoint(Journal):
    """The journal of one run's answers.

    Args:
        path: The file; made if it is not there.
        purpose: What it is for; see :func:`purpose_of`.

    Raises:
        InvalidInput: If the file was made for something else, is no checkpoint, or is damaged.
        OSError: If it cannot be opened, or another run is writing to it.
    """

    def __init__(self, path: str | os.PathLike[str], purpose: Purpose) -> None:
        self._n_queries: int = purpose.settings["questions"]
        self.answers: dict[int, tuple[list[DocumentLike], float]] = {}
        super().__init__(path, purpose)

    def append(self, position: int, documents: list[DocumentLike], seconds: float) -> None:
        """Add one answer; it is with the operating system when this returns.

        Raises:
            InvalidType: If a document's metadata would not come back the same.
            OSError: If it cannot be written.
        """
        kept = ",".join(map(_written, range(len(documents)), documents))
        self.write(f'{{"query":{position},"seconds":{float(seconds)!r},"documents":[{kept}]}}')
        self.answers[position] = (documents, seconds)

    def note(self) -> str:
        """Say what is kept, for a user whose run just ended."""
        return _note(len(self.answers), self._n_queries, self.path)

    def check(self, header: Mapping[str, Any]) -> None:
        """Refuse a file that was made for something else.

        A key stands for the settings of the retriever. One that is given later is believed, with a
        warning, but does not make it a retriever of another name.
        """
        asked = dict(self.purpose.settings)
        new_key = None if _KEY in header else asked.pop(_KEY, None)
        made, wanted, start = header, asked, _ANOTHER_RETRIEVER
        fix: Fix = start
        if _KEY in header:
            made, wanted = {**header, "retriever": None}, {**asked, "retriever": None}
            same = f"{start}. If it is the same retriever, pass {{}}"
            fix = Advice(same, checkpoint_key=header[_KEY])
        elif new_key is not None:
            made, wanted = _by_name(header), _by_name(asked)
        elif _by_name(asked).items() <= _by_name(header).items():
            fix = Advice(f"{start}. {_BY_KEY}", checkpoint_key=...)
        replace(self.purpose, settings=wanted).check(made, self.path, fix)
        settings = Purpose.differences(header["retriever"], asked["retriever"], {}, "retriever.")
        differing = "; ".join(settings)
        if new_key is not None and differing:
            told = _(
                "checkpoint: {path} was made without a {key}, with {differing}; its answers are "
                "taken as those of {key}={value}."
            )
            named = {"path": self.path, "key": _KEY, "differing": differing}
            warn(told.format(**named, value=clipped(new_key)))

    def take(self, line: bytes, place: Place) -> None:
        """Take an answer."""
        try:
            text = line.decode("utf-8", "surrogatepass")
            content = json.loads(text, object_hook=_read_value)
            position, seconds = content["query"], content["seconds"]
            documents: list[DocumentLike] = [
                one if isinstance(one, str) else Document(**one) for one in content["documents"]
            ]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            first_line = str(error).partition("\n")[0]
            raise _damaged(place, f"{type(error).__name__}: {first_line[:200]}") from error
        known = type(position) is int and 0 <= position < self._n_queries
        if not known or position in self.answers:
            raise _damaged(place, f"query {clipped(position)} is unknown, or answered before")
        if type(seconds) is not float or not 0 <= seconds < math.inf:
            raise _damaged(place, f"seconds must be a length of time, got {clipped(seconds)}")
        self.answers[position] = (documents, seconds)


def _damaged(place: Place, problem: str) -> DatasetError:
    fix = "delete the line, and its question is asked again"
    return place.error(f"no answer of a krag_eval checkpoint ({problem})", fix)


def _by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave the settings of the retriever out."""
    known = settings.get("retriever")
    return {**settings, "retriever": known.get("name") if isinstance(known, dict) else known}


def _plain_settings(runnable: Any) -> dict[str, Any]:
    """Return a retriever's settings that look the same in every process and do not grow."""
    names = getattr(type(runnable), "model_fields", ())
    held = ((name, getattr(runnable, name, None)) for name in names)
    others = ("name", "tags", "metadata")
    return {name: one for name, one in held if name not in others and _is_plain(one)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(one) for key, one in value.items())
    if isinstance(value, str):
        return len(value) <= _LONGEST_SETTING
    return type(value) in (bool, int) or (type(value) is float and math.isfinite(value))


_TAG = "~"

#: Type -> its name in the file, how it is written, how it is read.
_KINDS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.isoformat, datetime.time.fromisoformat),
    Decimal: ("decimal", str, Decimal),
    UUID: ("uuid", str, UUID),
    bytes: ("bytes", lambda one: base64.b64encode(one).decode("ascii"), base64.b64decode),
    float: ("float", repr, float),  # those JSON cannot write
    tuple: ("tuple", list, tuple),
    set: ("set", list, set),
    frozenset: ("frozenset", list, frozenset),
    dict: ("dict", lambda one: list(map(list, one.items())), dict),  # with keys JSON cannot write
}
_READ = {name: read for name, _, read in _KINDS.values()}


def _written(position: int, document: DocumentLike) -> str:
    """Return a retrieved document as JSON; a string stays one.

    Raises:
        InvalidType: If its metadata holds what would not come back the same.
    """
    if isinstance(document, str):
        return _dumped(str(document))
    metadata = {"metadata": dict(metadata_of(document) or {}), "id": written_id(document)}
    content = {"page_content": text_of(document), **metadata}
    try:
        return _dumped(_marked(content))
    except (TypeError, RecursionError) as error:
        deep = "what is nested too deeply or holds itself"
        held = deep if isinstance(error, RecursionError) else error
        problem = f": the retrieved document [{position}] cannot be kept in a file, as its metadata"
        fix = "let the retriever turn it into text or numbers, or run without a checkpoint"
        raise InvalidType("checkpoint", f"{problem} holds {held}", fix) from error


def _dumped(content: Any) -> str:
    return json.dumps(
        content, default=_marked_kind, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def _marked(value: Any) -> Any:
    """Mark what JSON would write as something else: tuples, infinities, keys that are no text."""
    if isinstance(value, dict):
        if _TAG not in value and all(type(key) is str for key in value):
            return {key: _marked(one) for key, one in value.items()}
        return _marked_kind(dict(value))
    if isinstance(value, list):
        return [_marked(one) for one in value]
    if isinstance(value, tuple) or (isinstance(value, float) and not math.isfinite(value)):
        return _marked_kind(value)
    return value


def _marked_kind(value: Any) -> Any:
    """Name the type of a value that JSON does not know, beside what it can be made of again."""
    if isinstance(value, np.generic):
        return _marked(value.item())
    kind = type(value)
    if kind not in _KINDS:
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__}")
    name, write, _ = _KINDS[kind]
    return {_TAG: name, "value": _marked(write(value))}


def _read_value(content: dict[str, Any]) -> Any:
    """Undo :func:`_marked_kind`."""
    return _READ[content[_TAG]](content["value"]) if _TAG in content else content
