"""What must hold for any input: shared by the bounded runs in the suite and by ``fuzz/``.

Every target takes one kind of input and returns if the package accepted it or refused it with one
of its own errors. Anything else is a finding: another exception, an unreadable message, a spelling
that does not read back, an unrequested file.
"""

from __future__ import annotations

import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from shapes import FIXTURES

from krag_eval import (
    Conventions,
    EvaluationResult,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    evaluate_file,
)
from krag_eval.cli import main
from krag_eval.comparison.gates import parse_floor
from krag_eval.core import parse_metric, spelled
from krag_eval.core.results.saved import _checksum
from krag_eval.core.scoring.cutoffs import check_cutoffs
from krag_eval.datasets import DatasetError, load_dataset, read_jsonl, read_trec

SAMPLE = [
    {"question": "First?", "actual": ["doc1", "doc2"], "predicted": ["doc1", "doc5"]},
    {"question": "둘째?", "actual": ["doc3"], "predicted": ["doc6", "doc3", "doc5"]},
]


def reader(kind, data):
    """A file is read, and can be evaluated, or refused on one line."""
    refusal = ""
    try:
        dataset = READERS[kind](io.BytesIO(data))
        if dataset.predicted is not None:
            dataset.evaluator(no_ground_truth="zero")
    except DatasetError as error:
        refusal = str(error)
    assert refusal.isprintable(), "refused on several lines"


def _cell(stream):
    text = stream.read().decode("utf-8", "replace")
    return load_dataset([{"question": "?", "actual": text, "predicted": []}])


def _rows(stream):
    head = b"question,actual,predicted,krag_eval\n"
    return load_dataset(io.BytesIO(head + stream.read()), format="csv")


#: What a file is taken for -> what reads it.
READERS = {
    "jsonl": read_jsonl,
    "table of jsonl": lambda stream: load_dataset(stream, format="jsonl"),
    "a run of jsonl": lambda stream: load_dataset(
        [{"id": "q1", "question": "When?", "actual": ["n"]}], retrieved=stream
    ),
    "csv": lambda stream: load_dataset(stream, format="csv"),
    "rows of csv": _rows,
    "cell": _cell,
    "run": lambda stream: read_trec({"1": {"d": 1}}, stream),
    "qrels": lambda stream: read_trec(stream, {"1": {"d": 1.0}}),
    "gzip": lambda stream: read_jsonl(io.BytesIO(b"\x1f\x8b\x08" + stream.read())),
    "parquet": lambda stream: load_dataset(stream, format="parquet"),
}


#: A record of each shape of another tool, to be changed.
SHAPES = [one.rows for one in FIXTURES.values()]


def shape(rows):
    """Records of another tool, whatever became of them, are a data set and a run, or refused."""
    try:
        lines = "".join(f"{json.dumps(one)}\n" for one in rows)
    except (TypeError, ValueError):  # what was put in their place holds no rows
        return
    for kind in ("jsonl", "table of jsonl", "a run of jsonl"):
        reader(kind, lines.encode())


def conventions(text):
    """Conventions read back from what they print as."""
    try:
        found = Conventions.parse(text)
    except ValueError as error:
        # A value that a field cannot have is refused in the name of the field.
        of_a_field = str(error).startswith(tuple(Conventions.allowed()))
        assert_readable(error, "must be one of" if of_a_field else "conventions")
        return
    assert Conventions.parse(str(found)) == found


def metric_name(text):
    """A metric with its cutoff has one spelling."""
    found = accepted("metric", parse_metric, text)
    if found:
        key, k = found
        assert parse_metric(f"{key}@{spelled(k)}") == found


def floor(text):
    """A floor is read, and checked against a result, or refused."""
    found = accepted("floor", parse_floor, text)
    if found:
        name, number = found
        parse_metric(name)
        report = accepted("floors", small_result().check, {name: number})
        assert report is None or len(report.gates) == 1
        str(report)


def cutoffs(value):
    """Cutoffs are whole numbers from 1, or None."""
    found = accepted("k must", check_cutoffs, value) or ()
    assert all(k is None or (type(k) is int and k >= 1) for k in found)


def saved_bytes(content, folder):
    """A file of any bytes is a saved result, or refused."""
    path = folder / "saved.json"
    path.write_bytes(content)
    result = accepted(str(path), EvaluationResult.from_json, path)
    if result is not None:
        use(result)


def saved_content(content, folder):
    """A file whose checksum fits, made by somebody else, is whole or refused.

    The checksum is given anew, so that what is behind it gets looked at.
    """
    content = {name: value for name, value in content.items() if name != "checksum"}
    try:
        content["checksum"] = _checksum(content)
    except ValueError:  # NaN or an infinity, which no checksum fits
        content["checksum"] = ""
    saved_bytes(json.dumps(content).encode(), folder)


def command_line(arguments, folder):
    """The command answers, refuses in one line, or says why a result is not good enough.

    It writes nothing but what was named.
    """
    if not all(map(can_be_given, arguments)):
        return
    before = {path: path.read_bytes() for path in files_in(folder)}
    result = CliRunner().invoke(main, arguments, input="")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (0, 1, 2), (arguments, result.exit_code)
    if result.exit_code == 2:
        said = result.output.splitlines()
        assert said[-1].startswith("krag-eval: error: "), (arguments, result.output)
        assert len(said[-1]) < 10_000, (arguments, len(said[-1]))
    after = {path: path.read_bytes() for path in files_in(folder)}
    touched = {path.name for path in {*before, *after} if before.get(path) != after.get(path)}
    named = {Path(one.partition("=")[2] or one).name for one in arguments}
    named |= {Path(one).name for one in arguments}
    assert touched <= named, (arguments, touched)


def can_be_given(argument):
    """Tell whether a shell could pass that: no NUL, nothing the file system cannot spell."""
    try:
        return "\0" not in os.fsdecode(os.fsencode(argument))
    except UnicodeEncodeError:
        return False


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def small_result():
    """Return a result with grades of its own, alternatives left out, and a query that fails."""
    with warnings.catch_warnings(action="ignore", category=KragEvalWarning):
        return OfflineRetrievalEvaluator(
            [["the cat sat", "on a mat"], ["dogs bark"], []],
            [["the cat sat down", "x"], ["birds"], ["a mat"]],
            matcher="rouge1",
            no_ground_truth="skip",
            queries=["u", "왜?", 7],
        ).evaluate([1, None])


def write_sample(path):
    path.write_text("".join(f"{json.dumps(one)}\n" for one in SAMPLE), "utf-8")


def saved_example(folder):
    """Return the content of a saved result, texts included."""
    path = folder / "example.json"
    small_result().to_json(path, texts=True)
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    path.unlink()
    return content


def saved_example_in_parts(folder):
    """Return the content of a saved result of a file evaluated in parts."""
    write_sample(folder / "parts.jsonl")
    result = evaluate_file(
        folder / "parts.jsonl", [1, None], per_query=folder / "rows.csv", chunk_size=1,
        progress=False,
    )  # fmt: skip
    result.to_json(folder / "parts.json")
    content: dict[str, Any] = json.loads((folder / "parts.json").read_text("utf-8"))
    return content


def use(result):
    """Ask a result for what it can tell; whatever was read must not fail later."""
    repr(result)
    result.to_dict()
    if result.totals is not None:
        use_rows(result)
        return
    for k in result.k:
        result.per_query(k)
        result.statuses(k)
        result.misses(k)
    try:
        result.first_ranks()
        for position in range(min(3, result.n_queries)):
            result.explain(position=position, k=result.k[0]).to_text()
    except ValueError as error:
        assert_readable(error, "this result holds no")


def use_rows(result):
    """Ask for rows that are in a file of their own; they may not be there, or not fit."""
    for k in result.k:
        for ask in (result.per_query, result.statuses):
            accepted("rows", ask, k)


def accepted(beginning, make, *given):
    """Return what is made of an input, or None if it is refused in readable words."""
    try:
        return make(*given)
    except ValueError as error:
        assert_readable(error, beginning)
        return None


def assert_readable(error, beginning):
    """Assert that a refusal speaks of what was refused, and not at endless length."""
    assert beginning in str(error), repr(error)[:500]
    assert len(str(error)) < 2_000, len(str(error))
