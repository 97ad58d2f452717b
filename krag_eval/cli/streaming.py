"""Large inputs from the shell: when to go through them in chunks, and what that leaves out."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from krag_eval.cli.options import bundled, given
from krag_eval.scoring.cutoffs import unspelled

if TYPE_CHECKING:
    from krag_eval.results.result import EvaluationResult

__all__ = ["Streaming", "streaming_options"]

#: A file of more bytes than this goes through in chunks, unless something needs all of it.
_LARGE = 2**28
_PARQUET = b"PAR1"

streaming_options = bundled(
    click.option(
        "--per-query",
        "per_query",
        metavar="OUT",
        help="Write one row per query as they come, as .parquet or .csv; a killed run goes on.",
    ),
    click.option(
        "--chunk-size",
        type=click.IntRange(min=1),
        metavar="N",
        help="Evaluate N queries at a time, with memory for those.  [default: 5000]",
    ),
    click.option(
        "--resume/--no-resume",
        default=None,
        help="Go on from the progress of a killed run with --per-query, or start anew.  "
        "[default: resume]",
    ),
)


class Streaming(NamedTuple):
    """What was asked for that concerns going through the input in chunks."""

    file: str
    per_query: str | None
    chunk_size: int | None
    resume: bool | None

    @property
    def is_asked_for(self) -> bool:
        """Whether an option says so, or the input cannot be read otherwise."""
        options = (self.per_query, self.chunk_size, self.resume)
        return any(option is not None for option in options) or _only_in_chunks(self.file)

    def wanted(self, need_rows: Mapping[str, bool]) -> bool:
        """Tell whether to go through the input in chunks.

        Args:
            need_rows: Option -> whether it was given, of those that need every query's row.

        Raises:
            ValueError: If there must be rows, and they are not to be written, or the input is of a
                kind that is read whole.
        """
        from krag_eval.datasets.streams import only_whole

        given = [option for option, is_given in need_rows.items() if is_given]
        if not self.is_asked_for:
            large = _size(self.file) > _LARGE
            return large and not given and only_whole(self.file) is None
        if self.file == "-":
            raise ValueError(
                "FILE: standard input can be read only once, so it is evaluated in memory; leave "
                "out --per-query, --chunk-size and --resume, or name a file."
            )
        if kind := only_whole(self.file):
            raise ValueError(
                f"{self.file}: {kind} is read whole, not in chunks; leave out --per-query, "
                "--chunk-size and --resume, or make JSON lines of it in Python: "
                f"load_dataset({self.file!r}).save('run.jsonl')."
            )
        if self.resume is not None and self.per_query is None:
            raise ValueError("--resume is about the progress of a run with --per-query; add it.")
        if given and self.per_query is None:
            raise ValueError(
                f"{given[0]} needs the values of every query, and this run keeps none; add "
                "--per-query OUT."
            )
        return True

    def evaluated(self, options: Mapping[str, Any]) -> EvaluationResult:
        """Evaluate the input in chunks."""
        from krag_eval.streaming import evaluate_file

        others = {name: value for name, value in given(options).items() if name != "cutoffs"}
        if self.chunk_size is not None:
            others["chunk_size"] = self.chunk_size
        return evaluate_file(
            self.file,
            [unspelled(one) for one in options["cutoffs"]],
            per_query=self.per_query,
            resume=self.resume is not False,
            **others,
        )


def _only_in_chunks(file: str) -> bool:
    """Tell whether this is a directory of files, or a Parquet file."""
    try:
        if os.path.isdir(file):
            return True
        if not stat.S_ISREG(os.stat(file).st_mode):
            return False  # looking into a pipe would take from it
        with Path(file).open("rb") as opened:
            return opened.read(len(_PARQUET)) == _PARQUET
    except (OSError, ValueError):
        return False  # the reader says what is wrong


def _size(file: str) -> int:
    try:
        seen = os.stat(file)
    except (OSError, ValueError):
        return 0
    return seen.st_size if stat.S_ISREG(seen.st_mode) else 0
