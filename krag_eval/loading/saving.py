"""Writing data sets to files, so that what is read again is equal; it is read before it counts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from krag_eval.core import (
    AnyOf,
    Conventions,
    DatasetError,
    Place,
    Tag,
    clipped,
    metadata_of,
    replacing,
    text_of,
)
from krag_eval.core.documents import LONGEST_TAG, written_id
from krag_eval.core.files import parquet_for, shielded
from krag_eval.loading.formats import File, rows_in
from krag_eval.loading.table import LISTED, OPTIONS, OWN, Records, content_of, tag_cell
from krag_eval.loading.vocabularies import KNOWN, NAMED, roles_of

_SEMICOLON = re.compile(r";(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
_KINDS: dict[str, tuple[str, bool]] = {
    ".jsonl": ("jsonl", False),
    ".jsonl.gz": ("jsonl", True),
    ".csv": ("csv", False),
    ".csv.gz": ("csv", True),
    ".parquet": ("parquet", False),
}


class Content(NamedTuple):
    """What is written of a data set; see ``Dataset`` for each."""

    queries: list[Any]
    actual: list[list[Any]]
    predicted: list[list[Any]] | None
    questions: list[str] | None
    defaults: Mapping[str, Any]
    tags: Mapping[str, list[Tag]] = {}
    judged: Sequence[Any] | None = None
    unwanted: Sequence[Any] | None = None
    cited: Sequence[Any] | None = None


def save_content(content: Content, path: str | os.PathLike[str]) -> None:
    """Write a data set; see ``Dataset.save``."""
    name = os.fsdecode(path)
    kind, compressed = _kind(name)
    rows = _Rows(content, name)
    with replacing(path) as temporary:
        if kind == "parquet":
            _write_parquet(rows, temporary)
        else:
            write = _write_jsonl if kind == "jsonl" else _write_csv
            with _opened(temporary, compressed) as file, _explained(name):
                write(rows, file)
        _check_again(rows, temporary, kind)


def _kind(name: str) -> tuple[str, bool]:
    for ending, kind in _KINDS.items():
        if name.lower().endswith(ending):
            return kind
    raise Place(name).error(
        f"a data set is written to a file that ends in {', '.join(_KINDS)}", "name one of these"
    )


class _Rows:
    """A data set as it is written, its documents plain values."""

    def __init__(self, content: Content, name: str) -> None:
        self.content, self.name = content, name
        self.sides = {"actual": content.actual}
        if content.predicted is not None:
            self.sides["predicted"] = content.predicted
        for side in dict.fromkeys(LISTED.values()):
            if (lists := getattr(content, side)) is not None:
                self.sides[side] = [*lists]
        n_queries = len(content.queries)
        for side, lists in self.sides.items():
            if len(lists) != n_queries:
                problem = f"the data set has {n_queries} queries and {len(lists)} lists in {side}"
                raise Place(name).error(problem, "give each query one")
        for side in dict.fromkeys(LISTED.values()):
            for query, given in enumerate(self.sides.get(side, ())):
                self._check_list(side, query, given)

    def _check_list(self, side: str, query: int, given: Any) -> None:
        be = "a list of documents"
        may_be = isinstance(given, list | None)
        if side == "judged":
            pool = isinstance(given, Mapping) and all(isinstance(one, str) for one in given)
            may_be, be = pool or isinstance(given, list), f"{be}, or map ids or texts to bools"
        if not may_be:
            raise self.refusal(query, f"what was {side} must be {be}")

    @property
    def questions(self) -> list[str] | None:
        """What to ask, one text per query."""
        return self.content.questions

    def documents(self, side: str) -> Iterator[Any]:
        """Yield each query's documents of a side; of a pool, which of them were looked at."""
        for items in self.sides[side]:
            if isinstance(items, Mapping | None):
                yield None if items is None else dict(items)
            else:
                yield [_plain(one) for one in items]

    @property
    def tags(self) -> dict[str, list[Tag]]:
        """The tags that have a column of their own: all whose names mean nothing else."""
        return {name: tags for name, tags in self.content.tags.items() if _names_a_column(name)}

    def marks(self, shown: Mapping[str, Sequence[Any]] = {}) -> list[dict[str, Any] | None]:
        """Return what krag_eval adds to each query: also the tags that its cells do not tell.

        Args:
            shown: Tag -> the cells of its column, where they are not its values.
        """
        kept: list[dict[str, Tag]] = [{} for _ in self.content.queries]
        for name, values in self.content.tags.items():
            cells = shown.get(name, values)
            for query, value in enumerate(values):
                if not _names_a_column(name) or (value is not None and cells[query] is not value):
                    kept[query][name] = value
        labels: Sequence[Any] = self.content.queries
        if self.questions is not None:
            labels = [None if label == asked and isinstance(label, str) else label
                      for label, asked in zip(labels, self.questions, strict=True)]  # fmt: skip
        elif labels == list(range(len(labels))):
            labels = [None] * len(labels)
        evaluator = {name: self._written(name, option)
                     for name, option in self.content.defaults.items()}  # fmt: skip
        pairs = zip(labels, kept, strict=True)
        marks = ({"label": label, "evaluator": evaluator, "tags": tags} for label, tags in pairs)
        return [{name: one for name, one in mark.items() if one not in (None, {})} or None
                for mark in marks]  # fmt: skip

    def _written(self, name: str, option: Any) -> Any:
        """Return an option of the evaluator as text or a number."""
        if isinstance(option, Conventions):
            changed = option.changed().items()
            return ",".join(f"{field}={value}" for field, value in changed) or "default"
        if (
            name in OPTIONS
            and isinstance(option, str | int | float)
            and option not in (True, False)
        ):
            return str(option) if isinstance(option, str) else option
        problem = f": {name}={clipped(option)} cannot be written to a file"
        fix = "leave it out of the data set, and pass it to the evaluator after loading"
        raise Place(self.name)._replace(column="defaults").error(problem, fix)

    def refusal(self, query: int, problem: str) -> DatasetError:
        """Return the refusal to write a query."""
        label = clipped(self.content.queries[query])
        return Place(self.name).error(
            f"queries[{query}] ({label}) cannot be written without loss: {problem}; nothing was "
            "written"
        )

    def json(self, query: int, value: Any) -> str:
        """Return a value as JSON, or refuse the query it belongs to."""
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise self.refusal(query, f"{error} (only what JSON has can be kept)") from error


def _names_a_column(tag: str) -> bool:
    return tag not in NAMED and tag not in LISTED and shielded(tag) == tag


def _plain(item: Any) -> Any:
    """Return a document as a plain value, interchangeable ones as ``{"any_of": …}``."""
    if isinstance(item, AnyOf):
        return {"any_of": [_plain(one) for one in item.alternatives]}
    if isinstance(item, str):
        return str(item)
    if isinstance(item, Mapping):
        return dict(item)
    content: dict[str, Any] = {"page_content": text_of(item)}
    if metadata_of(item):
        content["metadata"] = dict(metadata_of(item))
    return content if written_id(item) is None else {**content, "id": written_id(item)}


# Files


@contextmanager
def _opened(path: Path, compressed: bool) -> Iterator[IO[str]]:
    with path.open("wb") as raw:
        if not compressed:
            with io.TextIOWrapper(raw, "utf-8", newline="") as file:
                yield file
            return
        # Without name and time inside, equal data sets are equal files.
        with (
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            io.TextIOWrapper(packed, "utf-8", newline="") as file,
        ):
            yield file


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise Place(name).error(
            f"a text holds half of a surrogate pair ({error.object[error.start]!r}), which is not "
            "a character; nothing was written",
            "correct it",
        ) from error


def _write_jsonl(rows: _Rows, file: IO[str]) -> None:
    columns = _columns(rows, lambda query, value: value, rows.marks(), rows.tags, None)
    for query, values in enumerate(zip(*columns.values(), strict=True)):
        row = {name: one for name, one in zip(columns, values, strict=True)
               if name != OWN or one is not None}  # fmt: skip
        file.write(rows.json(query, row) + "\n")


def _write_csv(rows: _Rows, file: IO[str]) -> None:
    """Write a table in which no cell can be taken for a formula, however lines are parted."""
    tags = {name: [*map(_shown, values)] for name, values in rows.tags.items()}
    marks = rows.marks(tags)
    if rows.questions is not None:
        for query, question in enumerate(rows.questions):
            if shielded(question) != question:
                marks[query] = {**(marks[query] or {}), "shielded": True}
    columns = _columns(rows, lambda query, value: _csv_json(rows.json(query, value)), marks, tags)
    if rows.questions is not None:
        columns["question"] = [*map(shielded, rows.questions)]
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _csv_json(text: str) -> str:
    """Write a semicolon that a formula could follow in JSON's other way."""
    return _SEMICOLON.sub(r"\\u003b", text)


def _shown(tag: Tag) -> Tag:
    """Return a tag as the cell of a table of texts; the same text where it needs no mark."""
    text = shielded(tag_cell(tag))[:LONGEST_TAG]
    return tag if text == tag else text


def _columns(
    rows: _Rows,
    written: Callable[[int, Any], Any],
    marks: Sequence[Mapping[str, Any] | None],
    tags: Mapping[str, Sequence[Any]],
    empty: str | None = "",
) -> dict[str, list[Any]]:
    """Return the columns of a table; a mark is JSON, and there only if some query has one."""
    columns: dict[str, list[Any]] = {}
    if rows.questions is not None:
        columns["question"] = rows.questions
    for side in rows.sides:
        lists = rows.documents(side)
        columns[side] = [empty if documents is None else written(query, documents)
                         for query, documents in enumerate(lists)]  # fmt: skip
    columns |= {name: [*values] for name, values in tags.items()}
    if any(marks):
        columns[OWN] = [
            empty if mark is None else written(query, mark) for query, mark in enumerate(marks)
        ]
    return columns


def _write_parquet(rows: _Rows, path: Path) -> None:
    """Write lists of texts as such, so that other tools read them; other documents as JSON."""
    parquet = parquet_for(f"{rows.name}: writing Parquet files")
    import pyarrow

    texts = {
        side: all(
            isinstance(items, list | None) and all(isinstance(one, str) for one in items or ())
            for items in lists
        )
        for side, lists in rows.sides.items()
    }
    types = {name: _type_of(values) for name, values in rows.tags.items()}
    tags = {
        name: values if types[name] else [one if isinstance(one, str) else tag_cell(one) or None
                                          for one in values]
        for name, values in rows.tags.items()
    }  # fmt: skip
    columns = _columns(rows, rows.json, rows.marks(tags), tags, None)
    kinds: dict[str, Any] = dict.fromkeys(columns, pyarrow.string())
    kinds |= {name: getattr(pyarrow, kind)() for name, kind in types.items() if kind}
    for side, plain in texts.items():
        if plain:
            columns[side] = [*rows.documents(side)]
            kinds[side] = pyarrow.list_(pyarrow.string())
    with _explained(rows.name):
        table = pyarrow.table(
            {name: pyarrow.array(column, kinds[name]) for name, column in columns.items()}
        )
        parquet.write_table(table, path)


def _type_of(values: Sequence[Tag]) -> str:
    """Return the type of a column of tags in Parquet; empty where they are of several."""
    kinds = {type(one) for one in values if one is not None}
    if kinds <= {str}:
        return "string"
    if kinds == {int} and any(isinstance(one, int) and abs(one) >= 2**63 for one in values):
        return ""
    names = {int: "int64", float: "float64", bool: "bool_"}
    return names.get(next(iter(kinds)), "") if len(kinds) == 1 else ""


# What was written, read again


def _check_again(rows: _Rows, path: Path, kind: str) -> None:
    """Refuse what is read as anything else than what was to be written."""
    try:
        file = File(path, rows.name, max_bytes=None, wanted=KNOWN, tags=True)
        table = Records.of(rows_in(file, kind), rows.name)
        again = content_of(table, roles_of(table), choice=True, drafts="count", grades=None)
    except DatasetError as error:
        raise DatasetError(
            error.argument,
            error.problem,
            "so it cannot be written without loss; nothing was written",
            within=error.within,
            place=error.place,
        ) from error
    wanted = rows.content._asdict()
    for side in rows.sides:
        wanted[side] = [
            one if isinstance(one, dict | None) else list(map(_again, one))
            for one in rows.documents(side)
        ]
    for field in ("queries", "questions", "actual", "predicted", *dict.fromkeys(LISTED.values())):
        before, after = wanted[field], again.get(field)
        if before != after:
            query = next(
                (at for at, one in enumerate(before or []) if not after or one != after[at]), 0
            )
            raise rows.refusal(query, f"its part in {field} would be read as something else")
    for name, values in rows.content.tags.items():
        found = again["tags"].get(name, [])
        if found != values:
            query = next((at for at, one in enumerate(values) if found[at : at + 1] != [one]), 0)
            raise rows.refusal(query, f"its tag {clipped(name)} would be read as something else")
    if again["defaults"] != dict(rows.content.defaults):
        raise Place(rows.name).error("the data set's defaults cannot be written without loss")


def _again(value: Any) -> Any:
    """Return a plain value as it is read."""
    if isinstance(value, dict) and "any_of" in value:
        return AnyOf(value["any_of"])
    return value
