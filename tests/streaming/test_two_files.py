"""Two files joined in chunks: what a join in memory gives, or refuses, whatever the order."""

import gzip
import json
import os
import random
import re
import tempfile
import warnings

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from krag_eval import evaluate_file, load_dataset
from krag_eval.errors import DatasetError, InvalidInput, InvalidType, KragEvalWarning, Refusal
from krag_eval.streaming import files as files_module, queries as queries_module

GOLDEN = [{"id": f"q{n}", "question": f"{n}?", "actual": [f"t{n}", f"u{n}"], "topic": n % 2}
          for n in range(9)]  # fmt: skip
RUN = [{"id": f"q{n}", "predicted": ["x", f"t{n}"] if n % 2 else [f"t{n}"], "ms": n}
       for n in (4, 8, 2, 0, 6, 1, 7, 3, 5)]  # fmt: skip


def written(path, rows):
    """Write rows as the name of the file says."""
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".jsonl":
        path.write_text(text, "utf-8")
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        cells = [{name: json.dumps(one) if isinstance(one, list) else one
                  for name, one in row.items()} for row in rows]  # fmt: skip
        pd.DataFrame(cells).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Let everything be kept on disk, and nothing be left in the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(queries_module, "KEPT_IN_MEMORY", 1)
    yield folder
    assert os.listdir(folder) == []


def outcome(evaluate):
    """Return what came out, errors as values, with what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, notes = evaluate()
        except Refusal as error:
            return type(error), error.argument, error.problem, error.place
    # The place of a query without a question is worded in two ways.
    told = sorted(re.sub(r"\(the first is (on line|row|/).*?\)", "", str(one.message))
                  for one in caught)  # fmt: skip
    return result, [*result.tags.items()], result.labels, notes, told


def in_memory(golden, run, **options):
    dataset = load_dataset(golden, retrieved=run, **options)
    return dataset.evaluator(no_ground_truth="zero").evaluate([1, 3]), dataset.notes


def streamed(golden, run, **options):
    result = evaluate_file(golden, run, [1, 3], no_ground_truth="zero", **options)
    return result, result.notes


@pytest.mark.parametrize("size", [1, 4, None])
@pytest.mark.parametrize("names", [("g.jsonl", "r.jsonl"), ("g.csv", "r.parquet"),
                                   ("g.parquet", "r.jsonl.gz")])  # fmt: skip
def test_the_result_is_that_of_a_join_in_memory(tmp_path, size, names):
    """Averages, rows, tags, notes and warnings; in chunks and, of small files, at once."""
    golden, run = (written(tmp_path / name, rows)
                   for name, rows in zip(names, (GOLDEN, RUN), strict=True))  # fmt: skip
    expected = outcome(lambda: in_memory(golden, run))
    more = {} if size is None else {"chunk_size": size, "per_query": tmp_path / "rows.csv"}
    assert outcome(lambda: streamed(golden, run, **more)) == expected
    result = evaluate_file(golden, run)
    assert result.explain("q4").query == "4?"  # small files keep their evidence


IDS = st.sampled_from(["q1", "q2", 3, "질문", None])
ASKED = st.sampled_from(["When?", " When? ", "언제?", "\u110b\u1165\u11ab\u110c\u1166?", "", None, 3])
LISTS = st.sampled_from([["a"], ["b", "a"], [], [{"page_content": "a", "id": "7"}]])
OF_BOTH = {"id": IDS, "question": ASKED, "topic": st.sampled_from(["x", 1, None, "y" * 300])}


@st.composite
def sides(draw, **own):
    """Draw rows; of some files all have ids or questions of their own."""
    made = draw(st.lists(st.fixed_dictionaries(own, optional=OF_BOTH), min_size=1, max_size=6))
    for name in draw(st.sets(st.sampled_from(["id", "question"]))):
        made = [{**row, name: f"{name}{at}"} for at, row in enumerate(made)]
    for name in draw(st.sets(st.sampled_from(["id", "question"]), max_size=1)):
        made = [{key: one for key, one in row.items() if key != name} for row in made]
    return draw(st.permutations(made))


@given(
    golden=sides(actual=LISTS),
    run=sides(predicted=LISTS),
    missing=st.sampled_from([None, "error", "zero", "skip"]),
    size=st.sampled_from([None, 1, 2]),
    more=st.sampled_from([{}, {"unwanted": ["a"]}, {"cited": ["a"]}, {"retrieved_ids": ["7"]}]),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200
)
def test_whatever_is_joined_or_refused_is_so_in_memory(tmp_path, golden, run, missing, size, more):
    """Repeats, what is missing, ids of other questions, Hangul in its parts, mixed rows."""
    run[-1] = {**run[-1], **more}
    paths = [written(tmp_path / f"{name}.jsonl", rows)
             for name, rows in (("golden", golden), ("run", run))]  # fmt: skip
    options = {} if missing is None else {"missing": missing}
    expected = outcome(lambda: in_memory(*paths, **options))
    more = {} if size is None else {"chunk_size": size, "per_query": tmp_path / "rows.parquet"}
    found = outcome(lambda: streamed(*paths, **options, **more))
    assert found == expected
