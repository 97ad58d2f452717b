"""Options that are passed on, refused under the name of the function that was called."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import krag_eval
from krag_eval import (
    OfflineRetrievalEvaluator,
    RetrievalRecorder,
    aevaluate_retriever,
    aevaluate_retrievers,
    evaluate_file,
    evaluate_retriever,
    evaluate_retrievers,
    load_dataset,
)
from krag_eval._options import EVALUATOR_OPTIONS, PLAN_OPTIONS
from krag_eval.distributed import evaluate_dask, evaluate_ray, evaluate_spark
from krag_eval.evaluator import Plan

ROWS = [{"question": "When?", "actual": ["At nine."], "predicted": ["At nine."]}]


def nothing(question: str) -> list[str]:
    """Retrieve nothing."""
    return []


def of_a_dataset(**options: Any) -> object:
    """Make an evaluator of a data set."""
    return load_dataset(ROWS).evaluator(**options)


def alone(**options: Any) -> object:
    """Make an evaluator."""
    return OfflineRetrievalEvaluator([["a"]], [["a"]], **options)


def of_a_retriever(**options: Any) -> object:
    """Ask a retriever."""
    return evaluate_retriever(nothing, ROWS, **options)


def of_an_async_retriever(**options: Any) -> object:
    """Ask a retriever asynchronously."""
    return asyncio.run(aevaluate_retriever(nothing, ROWS, **options))


def of_retrievers(**options: Any) -> object:
    """Ask two."""
    return evaluate_retrievers({"a": nothing, "b": nothing}, ROWS, **options)


def of_async_retrievers(**options: Any) -> object:
    """Ask two asynchronously."""
    return asyncio.run(aevaluate_retrievers({"a": nothing, "b": nothing}, ROWS, **options))


def of_a_recording(**options: Any) -> object:
    """Evaluate a recording."""
    return RetrievalRecorder().evaluate([["a"]], **options)


def of_a_file(**options: Any) -> object:
    """Evaluate a file; options are checked before it is opened."""
    return evaluate_file("queries.jsonl", **options)


def by_spark(**options: Any) -> object:
    """Evaluate by Spark; options are checked before it is loaded."""
    return evaluate_spark(None, **options)  # type: ignore[arg-type]


def by_ray(**options: Any) -> object:
    """Evaluate by Ray; options are checked before it is loaded."""
    return evaluate_ray(None, **options)  # type: ignore[arg-type]


def by_dask(**options: Any) -> object:
    """Evaluate by Dask; options are checked before it is loaded."""
    return evaluate_dask(None, **options)


CALLS: list[tuple[Callable[..., object], str]] = [
    (of_a_dataset, "Dataset.evaluator"),
    (of_a_retriever, "evaluate_retriever"),
    (of_an_async_retriever, "aevaluate_retriever"),
    (of_retrievers, "evaluate_retrievers"),
    (of_async_retrievers, "aevaluate_retrievers"),
    (of_a_recording, "RetrievalRecorder.evaluate"),
    (of_a_file, "evaluate_file"),
    (by_spark, "evaluate_spark"),
    (by_ray, "evaluate_ray"),
    (by_dask, "evaluate_dask"),
]


@pytest.mark.parametrize(("call", "name"), CALLS, ids=[name for _, name in CALLS])
def test_an_unknown_option_is_refused_by_who_was_called(
    call: Callable[..., object], name: str
) -> None:
    """With the option that came, the nearest one, and all there are."""
    said = rf"{name}\(\) has no option 'matchr'; did you mean 'matcher'\? It takes .*'threshold'"
    with pytest.raises(TypeError, match=said):
        call(matchr="text")


@pytest.mark.parametrize(
    ("call", "option", "meant"),
    [(of_retrievers, "metrc", "metric"), (of_a_file, "chunksize", "chunk_size")],
)
def test_keywords_of_the_function_itself_are_suggested_too(
    call: Callable[..., object], option: str, meant: str
) -> None:
    """Not those alone that it hands on."""
    with pytest.raises(TypeError, match=f"no option '{option}'; did you mean '{meant}'"):
        call(**{option: 3})


@pytest.mark.parametrize(
    ("option", "meant"), [("match_method", "matcher"), ("rouge_threshold", "threshold")]
)
def test_krag_s_names_lead_to_ours(option: str, meant: str) -> None:
    """Though 'match_method' looks more like 'averaging_method'."""
    with pytest.raises(TypeError, match=f"has no option '{option}'; did you mean '{meant}'"):
        of_a_dataset(**{option: "rougeL"})


def test_an_option_like_no_other_is_refused_without_a_guess() -> None:
    """What is allowed is listed all the same."""
    with pytest.raises(TypeError, match=r"has no option 'zzz'\. It takes 'matcher', "):
        of_a_dataset(zzz=1)


def test_no_question_is_asked_before_options_are_checked() -> None:
    """A misspelt option costs nothing."""
    asked: list[str] = []
    with pytest.raises(TypeError, match="tresold"):
        evaluate_retriever(lambda question: asked.append(question) or [], ROWS, tresold=0.5)
    assert asked == []


def test_the_names_are_those_that_evaluators_take() -> None:
    """Read off the constructors: an option added there must be named here."""
    own = list(inspect.signature(OfflineRetrievalEvaluator).parameters)[2:]
    assert sorted(own) == sorted(EVALUATOR_OPTIONS)
    assert {one.name for one in fields(Plan)} == {*PLAN_OPTIONS}


def test_options_that_there_are_are_passed_on(tmp_path: Path) -> None:
    """The check takes nothing away."""
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps(ROWS[0]), encoding="utf-8")
    for result in (
        evaluate_file(path, matcher="contains", no_ground_truth="skip"),
        load_dataset(ROWS).evaluator(matcher="contains", no_ground_truth="skip").evaluate(),
    ):
        assert result.settings["matcher"] == "contains"
        assert result.settings["no_ground_truth"] == "skip"


def test_a_new_option_is_one_field_and_a_word_in_the_signature(tmp_path: Path) -> None:
    """Python, shell, stream, retriever, sweep and compat know it; so do signature and file."""
    shutil.copytree(Path(krag_eval.__file__).parent, tmp_path / "krag_eval")
    _insert(
        tmp_path / "krag_eval" / "_options.py",
        '    unjudged: str = option(\n        \'What the field "judged"',
        "    mood: str = option('How to look.', choices=('grim', 'mild'), default='grim',\n"
        "                       unsaid=('grim',))\n",
    )
    _insert(
        tmp_path / "krag_eval" / "evaluator.py",
        "        aspect_key: str | None = None,\n    ) -> None:",
        "        mood: str = 'grim',\n",
    )
    (tmp_path / "queries.jsonl").write_text(json.dumps(ROWS[0]), encoding="utf-8")
    (tmp_path / "proof.py").write_text(PROOF, encoding="utf-8")
    done = subprocess.run([sys.executable, "proof.py"], cwd=tmp_path, env={**os.environ,
                          "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


def _insert(file: Path, before: str, text: str) -> None:
    code = file.read_text("utf-8")
    assert code.count(before) == 1
    file.write_text(code.replace(before, text + before), encoding="utf-8")


PROOF = """
import json
from click.testing import CliRunner
from krag_eval import (EvaluationResult, OfflineRetrievalEvaluator, evaluate_file,
                       evaluate_retriever, load_dataset, sweep)
from krag_eval.errors import InvalidInput
from krag_eval.cli import main
from krag_eval.cli.sweep import _SETTINGS

def said(result):
    assert result.settings["mood"] == "mild", result.settings
    assert "mood=mild" in result.signature
    return result

rows = [{"question": "When?", "actual": ["At nine."], "predicted": ["At nine."]}]
result = said(OfflineRetrievalEvaluator([["a"]], [["a"]], mood="mild").evaluate())
assert "mood" not in OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate().signature
try:
    OfflineRetrievalEvaluator([["a"]], [["a"]], mood="wild")
except InvalidInput as error:
    assert error.argument == "mood"
else:
    raise AssertionError("not refused")
result.to_json("saved.json")
said(EvaluationResult.from_json("saved.json"))
said(evaluate_file("queries.jsonl", mood="mild"))
said(load_dataset(rows).evaluator(mood="mild").evaluate())
said(evaluate_retriever(lambda question: ["At nine."], load_dataset(rows), mood="mild"))
found = sweep(corpus=["At nine."], questions=rows, splitters={"whole": lambda one: [one]},
              retrievers={"all": lambda chunks: lambda question: chunks}, k=1, mood="mild")
said(found.cells[0].result)
assert "mood" in _SETTINGS
for command in ("evaluate", "compare", "diagnose", "misses"):
    assert "--mood [grim|mild]" in CliRunner().invoke(main, [command, "--help"]).output
out = CliRunner().invoke(main, ["evaluate", "queries.jsonl", "--mood", "mild", "--json", "o.json"])
assert out.exit_code == 0, out.output
said(EvaluationResult.from_json("o.json"))
"""
