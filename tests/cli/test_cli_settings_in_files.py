"""How rows ask to be evaluated, in the shell."""

import json
from pathlib import Path

import pytest
from cli_runs import run

ROW = {"question": "When?", "actual": ["opens at nine"], "predicted": ["nine pounds"]}


def _evaluated(typed, evaluator):
    marked = ROW | {"krag_eval": {"evaluator": evaluator}}
    Path("marked.jsonl").write_text(json.dumps(marked), "utf-8")
    Path("chunks.jsonl").write_text('"nine pounds"', "utf-8")
    found = run(f"evaluate marked.jsonl -k 1 --format json {typed}")
    signature = json.loads(found.stdout)["signature"].split(" | ")
    settings = dict(one.split("=", 1) for one in signature)
    return settings["matcher"].partition("(")[0], settings["threshold"], found.stderr


@pytest.mark.parametrize(
    ("typed", "threshold"),
    [("", "0.01"), ("-m rouge1", "0.5"), ("--threshold 0.3", "0.3"),
     ("--index chunks.jsonl --foreign-index allow", "0.01"),
     ("--index chunks.jsonl --foreign-index allow -m rouge1", "0.5"),
     ("--chunk-size 1 -m rouge1", "0.5")],
)  # fmt: skip
def test_what_is_typed_wins_whole_and_what_is_read_is_said(typed, threshold):
    """Once, on standard error."""
    matcher, found, told = _evaluated(typed, {"matcher": "rouge1", "threshold": 0.01})
    assert (matcher, found) == ("rouge1", threshold)
    assert told.count("matcher=rouge1, threshold=0.01") == 1


def test_a_matcher_that_an_index_chooses_brings_its_own_threshold():
    """The file's is that of the matcher it did not name, which is another."""
    matcher, found, _ = _evaluated("--index chunks.jsonl --foreign-index allow", {"grade_key": "g"})
    assert (matcher, found) == ("coverage", "0.8")
