"""The state of a run: what it has done so far, beside its output, so that a killed run resumes.

A directory named after the output, with ``.partial`` behind it, holds the rows of each chunk in a
file of its own, and ``progress.json``: what the run is made for, how far it has come, and what must
be kept of the chunks so far. A chunk's rows are written first, then ``progress.json`` takes their
number, in one step; whenever the process is killed, a chunk is done or not, and never twice.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from krag_eval._errors import Advice, InvalidInput, clipped
from krag_eval._io import Purpose, lock, naming
from krag_eval.datasets.streams import Cursor
from krag_eval.results.rows import join_rows, write_rows
from krag_eval.scoring.parts import Partial

__all__ = ["Progress", "RunState", "folder_of_progress"]

_PROGRESS = "progress.json"
_LOCK = "lock"
# Everything that a run may leave behind there; nothing else is ever deleted.
_OURS = re.compile(r"(part-[0-9]{6,}|joined)\.(parquet|csv)|progress\.json(\.new)?|lock")
_ANEW = Advice("pass {} to start anew", resume=False)
_BEGINNING = Cursor()


@dataclass(frozen=True)
class Progress:
    """How far a run has come.

    Attributes:
        partial: What must be kept of the queries so far.
        cursor: Where the next query begins.
        n_parts: Number of chunks whose rows are written.
        n_unnamed: Queries without a question.
        first_unnamed: The place of the first of them.
        tags: The names of the tags, in order: those of the first chunk.
        left_out: Why other fields are not among them, or not in every row.
    """

    partial: Partial
    cursor: Cursor = _BEGINNING
    n_parts: int = 0
    n_unnamed: int = 0
    first_unnamed: str = ""
    tags: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

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
            tuple(map(str, content.get("tags", ()))),
            dict(content.get("left_out", {})),
        )


def folder_of_progress(output: Path) -> Path:
    """Return the directory that holds the progress of a run until its output appears."""
    return output.with_name(f"{output.name}.partial")


class RunState:
    """The open state of one run; use it in a ``with`` block.

    Args:
        output: The file all rows go into in the end.
        run: What the run is made for: its input and its settings, as JSON can hold it.
        resume: Whether to resume from what is there; if not, it is deleted.

    Raises:
        InvalidInput: If what is there was made for another run, or is damaged.
        OSError: If it cannot be written, or another run is writing to it.
    """

    def __init__(self, output: Path, run: Mapping[str, Any], *, resume: bool) -> None:
        self.folder = folder_of_progress(output)
        self._output = output
        # As it will be read back.
        made_for = {"run": json.loads(json.dumps(run))}
        spoken = {"files": "other files, or changed since"}
        self._purpose = Purpose("per_query", "krag_eval.progress", 1, made_for, _ANEW, spoken)
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
            self._delete()  # nothing to resume from
        elif error is not None:
            error.add_note(f"What is done is kept in {self.folder}; the same call resumes there.")
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
            raise InvalidInput(
                "per_query",
                f": {self.folder} is needed for the progress of the run and holds something else "
                f"({clipped(foreign[0])})",
                "move it away, or name another output",
            )
        file = self._stack.enter_context((self.folder / _LOCK).open("wb"))
        lock(file, "per_query", self.folder)
        if not resume:
            self._delete_parts()
        if (self.folder / _PROGRESS).exists():
            self.progress = self._read()

    def _read(self) -> Progress:
        path = self.folder / _PROGRESS
        try:
            content = json.loads(path.read_text("utf-8"))
            progress = Progress.from_json(content.pop("progress"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f": the progress in {path} is damaged ({error!r:.200})"
            raise InvalidInput("per_query", problem, _ANEW) from error
        remedy = Advice("finish that run as it was begun, or pass {} to start anew", resume=False)
        self._purpose.check(content, self.folder, remedy)
        for number in range(progress.n_parts):
            if not self._part(number).is_file():
                raise InvalidInput("per_query", f": {self._part(number)} is missing", _ANEW)
        return progress

    def _write(self, progress: Progress) -> None:
        content = {**self._purpose.header, "progress": progress.to_json()}
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
        with suppress(OSError):  # another run may be about to write here
            (self.folder / _LOCK).unlink()
            self.folder.rmdir()


def _flush(path: Path) -> None:
    """Flush a file to disk, so that a loss of power does no more harm than a kill."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
