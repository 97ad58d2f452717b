"""Options that are passed on, refused under the name of the function that was called."""

import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path

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
from krag_eval.core import EVALUATOR_OPTIONS, PLAN_OPTIONS
from krag_eval.core.evaluator import Plan
from krag_eval.distributed import evaluate_dask, evaluate_ray, evaluate_spark
from krag_eval.errors import InvalidType

ROWS = [{"question": "When?", "actual": ["At nine."], "predicted": ["At nine."]}]


def nothing(question):
    """Retrieve nothing."""
    return []


# Options are checked before a file is opened or an engine loaded.
PAIR = {"a": nothing, "b": nothing}
CALLS = {
    "Dataset.evaluator": load_dataset(ROWS).evaluator,
    "evaluate_retriever": partial(evaluate_retriever, nothing, ROWS),
    "aevaluate_retriever": lambda **o: asyncio.run(aevaluate_retriever(nothing, ROWS, **o)),
    "evaluate_retrievers": partial(evaluate_retrievers, PAIR, ROWS),
    "aevaluate_retrievers": lambda **o: asyncio.run(aevaluate_retrievers(PAIR, ROWS, **o)),
    "RetrievalRecorder.evaluate": partial(RetrievalRecorder().evaluate, [["a"]]),
    "evaluate_file": partial(evaluate_file, "queries.jsonl"),
    "evaluate_spark": partial(evaluate_spark, None),
    "evaluate_ray": partial(evaluate_ray, None),
    "evaluate_dask": partial(evaluate_dask, None),
}


@pytest.mark.parametrize(
    ("name", "option", "meant"),
    [
        *((name, "matchr", "did you mean 'matcher'? It takes ") for name in CALLS),
        # Keywords of the function itself, not those alone that it hands on.
        ("evaluate_retrievers", "metrc", "did you mean 'metric'? "),
        ("evaluate_file", "chunksize", "did you mean 'chunk_size'? "),
        # krag's names, though 'match_method' looks more like 'averaging_method'.
        ("Dataset.evaluator", "match_method", "did you mean 'matcher'? "),
        ("Dataset.evaluator", "rouge_threshold", "did you mean 'threshold'? "),
        # Like no other; what is allowed is listed all the same.
        ("Dataset.evaluator", "zzz", "It takes 'matcher', "),
    ],
)
def test_an_unknown_option_is_refused_by_who_was_called(name, option, meant):
    """With the option that came, the nearest one, and all there are."""
    with pytest.raises(InvalidType) as caught:
        CALLS[name](**{option: 3})
    assert caught.value.argument == option
    assert caught.value.problem == f": {name}() has no option '{option}'"
    assert caught.value.fix.startswith(meant)
    assert "'threshold'" in caught.value.fix


def test_no_question_is_asked_before_options_are_checked():
    """A misspelt option costs nothing."""
    asked: list[str] = []
    with pytest.raises(TypeError, match="tresold"):
        evaluate_retriever(lambda question: asked.append(question) or [], ROWS, tresold=0.5)
    assert asked == []


def test_the_names_are_those_that_evaluators_take():
    """Read off the constructors: an option added there must be named here."""
    own = list(inspect.signature(OfflineRetrievalEvaluator).parameters)[2:]
    assert sorted(own) == sorted(EVALUATOR_OPTIONS)
    assert {one.name for one in fields(Plan)} == {*PLAN_OPTIONS}


def test_options_that_there_are_are_passed_on(tmp_path):
    """The check takes nothing away."""
    path = tmp_path / "queries.jsonl"
    path.write_text(json.dumps(ROWS[0]), encoding="utf-8")
    for result in (
        evaluate_file(path, matcher="contains", no_ground_truth="skip"),
        load_dataset(ROWS).evaluator(matcher="contains", no_ground_truth="skip").evaluate(),
    ):
        assert result.settings["matcher"] == "contains(fold_whitespace=yes)"
        assert result.settings["no_ground_truth"] == "skip"


def test_a_new_option_is_one_field_and_an_argument_that_the_constructor_hands_on(tmp_path):
    """Python, shell, stream, retriever, sweep and compat know it; so do signature and file."""
    shutil.copytree(Path(krag_eval.__file__).parent, tmp_path / "krag_eval")
    _insert(
        tmp_path / "krag_eval" / "core" / "options.py",
        '    unjudged: str = option(\n        \'What the field "judged"',
        "    mood: str = option('How to look.', choices=('grim', 'mild'), default='grim',\n"
        "                       unsaid=('grim',))\n",
    )
    _insert(
        tmp_path / "krag_eval" / "core" / "evaluator.py",
        "        score_cutoff: float | None = None,\n    ) -> None:",
        "        mood: str = 'grim',\n",
    )
    _insert(
        tmp_path / "krag_eval" / "core" / "evaluator.py",
        "            score_cutoff=score_cutoff,\n",
        "            mood=mood,\n",
    )
    (tmp_path / "queries.jsonl").write_text(json.dumps(ROWS[0]), encoding="utf-8")
    (tmp_path / "proof.py").write_text(PROOF, encoding="utf-8")
    done = subprocess.run([sys.executable, "proof.py"], cwd=tmp_path, env={**os.environ,
                          "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


def _insert(file, before, text):
    code = file.read_text("utf-8")
    assert code.count(before) == 1
    file.write_text(code.replace(before, text + before), encoding="utf-8")


PROOF = """
import json
from click.testing import CliRunner
from krag_eval import (EvaluationResult, OfflineRetrievalEvaluator, evaluate_file,
                       evaluate_retriever, load_dataset, sweep)
from krag_eval.core.errors import InvalidInput
from krag_eval.cli import main
from krag_eval.sweeping.command import _SETTINGS

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
