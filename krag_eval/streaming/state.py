"""The state of a run: what it has done so far, beside its output, so that a killed run goes on.

A directory named after the output, with ``.partial`` behind it, holds the rows of each chunk in a
file of its own, and ``progress.json``: what the run is made for, how far it has come, and what must
be kept of the chunks so far. A chunk's rows are written first, then ``progress.json`` takes their
number, in one step; whenever the process is killed, a chunk is done or not, and never twice. This
room must not know how chunks are read or evaluated.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from krag_eval._errors import clipped
from krag_eval._io import lock, naming
from krag_eval.datasets.streams import Cursor
from krag_eval.results.rows import join_rows, write_rows
from krag_eval.scoring.parts import Partial

__all__ = ["Progress", "RunState", "folder_of_progress"]

_FORMAT = "krag_eval._io"
_VERSION = 1
_PROGRESS = "progress.json"
_LOCK = "lock"
# Everything that a run may leave behind there; nothing else is ever deleted.
_OURS = re.compile(r"(part-[0-9]{6,}|joined)\.(parquet|csv)|progress\.json(\.new)?|lock")


_BEGINNING = Cursor()


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        partial: What must be kept of the queries so far.
        cursor: Where the next query begins.
        n_parts: Number of chunks whose rows are written.
        n_unnamed: Queries without a question.
        first_unnamed: Where the first of them stands.
    """

    partial: Partial
    cursor: Cursor = _BEGINNING
    n_parts: int = 0
    n_unnamed: int = 0
    first_unnamed: str = ""

    @property
    def n_queries(self) -> int:
        """Number of queries so far."""
        return self.partial.summary.n_queries

    def to_json(self) -> dict[str, Any]:
        """Return the progress as what JSON can hold, exactly."""
        others = replace(self, partial=None)  # type: ignore[arg-type]
        return {**asdict(others), "partial": self.partial.to_json()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Progress:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        file, records = map(int, content["cursor"])
        return cls(
            Partial.from_json(content["partial"]),
            Cursor(file, records),
            int(content["n_parts"]),
            int(content["n_unnamed"]),
            str(content["first_unnamed"]),
        )


def folder_of_progress(output: Path) -> Path:
    """Return the directory that holds the progress of a run until its output appears."""
    return output.with_name(f"{output.name}.partial")


class RunState:
    """The open state of one run; use it in a ``with`` block.

    Args:
        output: The file all rows go into in the end.
        run: What the run is made for: its input and its settings, as JSON can hold it.
        resume: Whether to go on from what is there; if not, it is deleted.

    Raises:
        ValueError: If what is there was made for another run, or is damaged.
        OSError: If it cannot be written, or another run is writing to it.
    """

    def __init__(self, output: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = folder_of_progress(output)
        self._output = output
        # As it will be read back.
        self._run = json.loads(json.dumps(run))
        self._stack = ExitStack()
        self.progress: Progress | None = None
        try:
            self._open(resume=resume)
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> RunState:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not (self.folder / _PROGRESS).exists():
            self._delete()  # nothing to go on from
        elif error is not None:
            error.add_note(
                f"What is done is kept in {self.folder}; the same call goes on from there."
            )
        self._stack.close()

    def add(self, rows: Mapping[str, NDArray[Any]], progress: Progress) -> None:
        """Keep the rows of one more chunk; when this returns, they are kept for good."""
        part = self._part(progress.n_parts - 1)
        with naming(part):
            write_rows(part, rows)
            _flush(part)
        self._write(progress)

    def finish(self, n_parts: int) -> None:
        """Put the rows together; the output appears complete, and the state is deleted."""
        joined = self.folder / f"joined{self._output.suffix}"
        with naming(joined):
            join_rows([self._part(number) for number in range(n_parts)], joined)
            _flush(joined)
        os.replace(joined, self._output)
        self._delete()

    def _open(self, *, resume: bool) -> None:
        self.folder.mkdir(exist_ok=True)
        foreign = [name for name in os.listdir(self.folder) if not _OURS.fullmatch(name)]
        if foreign:
            raise ValueError(
                f"per_query: {self.folder} is needed for the progress of the run and holds "
                f"something else ({clipped(foreign[0])}); move it away, or name another output."
            )
        file = self._stack.enter_context((self.folder / _LOCK).open("wb"))
        lock(file, f"per_query: {self.folder} is in use by another run; wait for it.")
        if not resume:
            self._delete_parts()
        if (self.folder / _PROGRESS).exists():
            self.progress = self._read()

    def _read(self) -> Progress:
        path = self.folder / _PROGRESS
        remedy = "pass resume=False to start anew"
        try:
            content = json.loads(path.read_text("utf-8"))
            kind = content["format"], content["format_version"]
            run, progress = content["run"], Progress.from_json(content["progress"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{path}: the progress is damaged ({error!r:.200}); {remedy}."
            ) from error
        if kind != (_FORMAT, _VERSION):
            raise ValueError(f"{path}: written by another version of krag_eval; {remedy}.")
        for name, ours in self._run.items():
            if run.get(name) != ours:
                raise ValueError(
                    f"{self.folder} is the progress of another run: {name} is "
                    f"{_differing(ours, run.get(name))} there; finish that run as it was begun, "
                    f"or {remedy}."
                )
        for number in range(progress.n_parts):
            if not self._part(number).is_file():
                raise ValueError(f"{self._part(number)} is missing; {remedy}.")
        return progress

    def _write(self, progress: Progress) -> None:
        content = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "run": self._run,
            "progress": progress.to_json(),
        }
        new = self.folder / f"{_PROGRESS}.new"
        with naming(new):
            new.write_text(json.dumps(content, ensure_ascii=True), "ascii")
            _flush(new)
        os.replace(new, self.folder / _PROGRESS)

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}{self._output.suffix}"

    def _delete_parts(self) -> None:
        # The progress first: without it, what else is left means nothing.
        (self.folder / _PROGRESS).unlink(missing_ok=True)
        for name in os.listdir(self.folder):
            if name != _LOCK and _OURS.fullmatch(name):
                (self.folder / name).unlink()

    def _delete(self) -> None:
        if not self.folder.is_dir():
            return
        self._delete_parts()
        if sys.platform == "win32":  # an open file cannot be deleted there
            self._stack.close()
        with suppress(OSError):  # somebody may be about to write here again
            (self.folder / _LOCK).unlink()
            self.folder.rmdir()


def _flush(path: Path) -> None:
    """Have the disk keep a file, so that a loss of power is no worse than a kill."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _differing(ours: Any, theirs: Any) -> str:
    """Show what is there instead; of settings, the one that differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        return f"{names[0]}={clipped(theirs.get(names[0]))}, not {clipped(ours.get(names[0]))},"
    return clipped(theirs)
