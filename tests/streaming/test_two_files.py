"""Two files joined in chunks: what a join in memory gives, or refuses, whatever the order."""

import gzip
import json
import os
import re
import tempfile
import warnings

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from krag_eval import KragEvalWarning, evaluate_file, load_dataset
from krag_eval.errors import DatasetError, InvalidInput, InvalidType, Place, Refusal
from krag_eval.streaming import files as files_module
from krag_eval.streaming.files import RunState

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
    monkeypatch.setattr(files_module, "MOST_WEIGHT", 1)
    yield folder
    assert os.listdir(folder) == []


def outcome(evaluate):
    """Return what came out, errors as values, with what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, notes = evaluate()
        except Refusal as error:
            # In memory, a column with one list among its ids is none; the line may be another.
            problem = re.sub(r"\S+ has no id among", "", error.problem)
            # There, rows of one question with a text each are told as such.
            problem = re.sub(r"asks .* again, .*|.* is given a second time .*", "twice", problem)
            return type(error), error.argument, problem, error.place
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


@pytest.mark.parametrize("evaluate", [in_memory, streamed])
@pytest.mark.parametrize("side", ["golden", "run"])
def test_a_question_that_comes_again_with_one_text_in_each_row_is_refused(tmp_path, evaluate, side):
    """Also where both rows are the same: they may be a long table of one document in each row."""
    row = {"question": "When?", "actual": ["a"] if side == "run" else "a", "predicted": "a"}
    rows = {"golden": [row], "run": [row], side: [row, row]}
    paths = [written(tmp_path / f"{name}.jsonl", rows[name]) for name in ("golden", "run")]
    with pytest.raises(DatasetError) as refused:
        evaluate(*paths)
    assert (refused.value.place.name, refused.value.place.line) == (str(paths[side == "run"]), 2)


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


LISTS = st.sampled_from([["a"], ["b", "a"], [], [{"page_content": "a", "id": "7"}]])
# "언제?" as macOS writes it is another text, and the same question.
VALUES = {
    "id": ["id0", 3, None, "질문", ["id0"]],
    "question": ["0?", " 0?\n", "언제?", "\u110b\u1165\u11ab\u110c\u1166?", "", None],
    "topic": ["x", 1, None, "y" * 300],
    "ms": [1, 2.5],
    "cited": [["a"], None],
    "unwanted": [["b"]],
    "judged": [["b"], {"a": True}],
    "predicted": [["a"], []],
}
OF_GOLDEN = {"actual": [[], 7], "expected_ids": [["7"], None]}
OF_RUN = {"retrieved_ids": [["7"], None], "question": [3], "predicted": ["a"]}


@st.composite
def two_files(draw):
    """Draw two files that join, and some changes of their rows that may end this."""
    order = draw(st.permutations(range(draw(st.integers(1, 5)))))
    names = draw(st.sampled_from([["id"], ["question"], ["id", "question"]]))

    def row(at, **documents):
        known = {"id": f"id{at}", "question": f"{at}?"}
        return {**{name: known[name] for name in names}, **documents}

    golden = [row(at, actual=draw(LISTS)) for at in range(len(order))]
    run = [row(at, predicted=draw(LISTS)) for at in order]
    for rows, own in ((golden, OF_GOLDEN), (run, OF_RUN)):
        changes = [(name, one) for name, some in {**VALUES, **own}.items() for one in some]
        for name, one in draw(st.lists(st.sampled_from(changes), max_size=2)):
            draw(st.sampled_from(rows))[name] = one
        change = draw(st.sampled_from(["", "", "drop", "repeat", "forget"]))
        if change == "drop" and len(rows) > 1:
            rows.pop(draw(st.integers(0, len(rows) - 1)))
        elif change == "repeat":
            rows.insert(draw(st.integers(0, len(rows))), dict(draw(st.sampled_from(rows))))
        elif change == "forget":
            draw(st.sampled_from(rows)).pop(draw(st.sampled_from(names)), None)
    return golden, run


@given(
    two=two_files(),
    missing=st.sampled_from([None, "error", "zero", "skip"]),
    size=st.sampled_from([None, 1, 2]),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_joined_or_refused_is_so_in_memory(tmp_path, two, missing, size):
    """Repeats, what is missing, ids of other questions, Hangul in its parts, mixed rows."""
    # Where the only query without a question is left out, all others are called by theirs.
    assume(missing != "skip" or all("question" in row and row["question"] for row in two[0]))
    paths = [written(tmp_path / f"{name}.jsonl", rows)
             for name, rows in zip(("golden", "run"), two, strict=True)]  # fmt: skip
    options = {} if missing is None else {"missing": missing}
    expected = outcome(lambda: in_memory(*paths, **options))
    more = {} if size is None else {"chunk_size": size, "per_query": tmp_path / "rows.parquet"}
    assert outcome(lambda: streamed(*paths, **options, **more)) == expected


@pytest.fixture
def files(tmp_path):
    return written(tmp_path / "golden.jsonl", GOLDEN), written(tmp_path / "run.jsonl", RUN)


def stopped(*_):
    raise KeyboardInterrupt


def test_a_stopped_run_goes_on(tmp_path, files, monkeypatch):
    """With the run joined again, and no query evaluated twice."""
    rows, options = tmp_path / "rows.csv", {"k": [1, 3], "chunk_size": 2}
    add, kept = RunState.add, []

    def noting(self, columns, progress):
        kept.extend(columns["query"])
        (stopped if progress.n_parts > 2 else add)(self, columns, progress)

    with monkeypatch.context() as patched:
        patched.setattr(RunState, "add", noting)
        with pytest.raises(KeyboardInterrupt):
            evaluate_file(*files, per_query=rows, **options)
    first, kept[:] = kept[:4], []
    with monkeypatch.context() as patched:
        patched.setattr(
            RunState, "add", lambda *given: (kept.extend(given[1]["query"]), add(*given))
        )
        result = evaluate_file(*files, per_query=rows, **options)
    assert first + kept == [row["question"] for row in GOLDEN]
    assert result == load_dataset(files[0], retrieved=files[1]).evaluator().evaluate([1, 3])
    assert sorted(os.listdir(tmp_path)) == ["golden.jsonl", "rows.csv", "run.jsonl", "temporary"]


@pytest.mark.parametrize("changed", ["golden", "run", "name", "missing", "alone"])
def test_progress_of_other_files_is_not_taken_up(tmp_path, files, monkeypatch, changed):
    """An edited run, another one, another treatment of what it lacks, or none at all."""
    golden, run = files
    rows, options = tmp_path / "rows.csv", {"chunk_size": 2, "missing": "zero"}
    with monkeypatch.context() as patched:
        patched.setattr(RunState, "finish", stopped)
        with pytest.raises(KeyboardInterrupt):
            evaluate_file(golden, run, per_query=rows, **options)
    if changed in ("golden", "run"):
        path, content = (golden, GOLDEN) if changed == "golden" else (run, RUN)
        written(path, [*content[:-1], {**content[-1], "more": 1}])
    elif changed == "name":
        run = written(tmp_path / "other.jsonl", RUN)
    elif changed == "missing":
        options["missing"] = "skip"
    else:
        both = [{**one, "predicted": []} for one in GOLDEN]
        golden, run, options["missing"] = written(golden, both), None, None
    with pytest.raises(InvalidInput) as refused:
        evaluate_file(golden, run, per_query=rows, **options)
    assert refused.value.argument == "per_query"


def test_a_run_that_changes_while_it_is_read_is_refused(tmp_path, files, monkeypatch):
    """What was joined would be of neither version."""
    golden, run = files
    add = RunState.add

    def changing(self, columns, progress):
        written(run, RUN[:-1])
        add(self, columns, progress)

    monkeypatch.setattr(RunState, "add", changing)
    with pytest.raises(DatasetError) as refused:
        evaluate_file(golden, run, per_query=tmp_path / "rows.csv")
    assert refused.value.file == str(run)


def test_a_folder_for_temporary_files_that_is_full_is_named(files, temporary, monkeypatch):
    """Nothing else tells where the run is kept."""

    class Full(files_module.SpooledTemporaryFile):
        def write(self, _content):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_module, "SpooledTemporaryFile", Full)
    with pytest.raises(OSError, match="No space left on device") as refused:
        evaluate_file(*files)
    assert (refused.value.errno, refused.value.filename) == (28, str(temporary))


@pytest.mark.filterwarnings("ignore:Every list")
@pytest.mark.parametrize(("given", "k"), [((5,), (5,)), (([1, 5],), (1, 5)), ((None,), (None,)),
                                          ((), (1, 3, 5, 10)), ((None, 2), (2,))])  # fmt: skip
def test_cutoffs_in_the_second_place_are_cutoffs_still(tmp_path, given, k):
    """As before a run could stand there."""
    path = written(tmp_path / "both.jsonl", [{**GOLDEN[0], "predicted": ["t0"]}])
    assert evaluate_file(path, *given).k == k
    assert [str(one) for one in evaluate_file(path, "1000w").k] == ["1000w"]


def test_a_run_is_named_in_either_way(files):
    """By place or by name, as text or as a path, with cutoffs behind it."""
    golden, run = files
    found = [evaluate_file(golden, run, 3), evaluate_file(str(golden), str(run), k=3),
             evaluate_file(golden, retrieved=run, k=3)]  # fmt: skip
    assert found[0] == found[1] == found[2]


def test_what_the_second_place_cannot_be_is_refused(files):
    """Cutoffs in both places, rows in memory, no file, and a treatment of a run without one."""
    golden, _run = files
    for call in (lambda: evaluate_file(golden, 3, 5), lambda: evaluate_file(golden, RUN, 5)):
        with pytest.raises(InvalidType) as refused:
            call()
        assert refused.value.argument == "retrieved"
    with pytest.raises(DatasetError):
        evaluate_file(golden, "nowhere.jsonl")
    with pytest.raises(InvalidInput) as unclear:
        evaluate_file(golden, missing="zero")
    assert unclear.value.argument == "missing"


@pytest.mark.filterwarnings("ignore:Every list")
def test_rows_of_questions_that_are_left_out_keep_the_positions_of_the_others(tmp_path):
    """As a data set that is joined in memory keeps them, where there are no questions."""
    nameless = [{name: row[name] for name in ("id", "actual")} for row in GOLDEN]
    golden, run = written(tmp_path / "g.jsonl", nameless), written(tmp_path / "r.jsonl", RUN[:5])
    with pytest.warns(KragEvalWarning, match="are left out"):
        result = evaluate_file(golden, run, missing="skip", per_query=tmp_path / "rows.csv")
    assert (
        result.labels == pd.read_csv(tmp_path / "rows.csv")["position"].tolist() == [0, 2, 4, 6, 8]
    )


def test_what_is_wrong_with_a_retrieved_document_is_said_of_the_run(tmp_path):
    """Its line is another one than that of the question."""
    with_id, without = {"page_content": "a", "id": "7"}, {"page_content": "a"}
    golden = written(tmp_path / "g.jsonl", [{**row, "actual": [with_id]} for row in GOLDEN])
    run = [{**row, "predicted": [without if row["id"] == "q6" else with_id]} for row in RUN]
    with pytest.raises(DatasetError) as refused:
        evaluate_file(golden, written(tmp_path / "r.jsonl", run), matcher="id", chunk_size=3)
    assert refused.value.place == (str(tmp_path / "r.jsonl"), 5, None, "from 0", "")


@pytest.mark.parametrize("tags", [False, ["topic"], ["ms"]])
def test_tags_are_those_that_were_chosen(tmp_path, files, tags):
    """Of either file; ids join whether they are kept or not."""
    result = evaluate_file(*files, tags=tags, per_query=tmp_path / "rows.csv", chunk_size=4)
    assert [*result.tags] == (tags or [])
    assert [*evaluate_file(*files, tags=tags).tags] == (tags or [])


def test_a_tag_that_neither_file_has_is_refused(files):
    with pytest.raises(DatasetError):
        evaluate_file(*files, tags=["topics"])


def test_folders_of_files_join(tmp_path):
    """Rows continue over the ends of files, on either side."""
    for name, rows in (("golden", GOLDEN), ("run", RUN)):
        (tmp_path / name).mkdir()
        for part in range(3):
            written(tmp_path / name / f"{part}.jsonl", rows[part::3])
    result = evaluate_file(tmp_path / "golden", tmp_path / "run", [1, 3], chunk_size=2,
                           per_query=tmp_path / "rows.csv")  # fmt: skip
    golden = [row for part in range(3) for row in GOLDEN[part::3]]
    assert result == load_dataset(golden, retrieved=RUN).evaluator().evaluate([1, 3])


JOINS = {
    "in memory": in_memory,
    "by chunks": lambda *files, **options: streamed(*files, chunk_size=1, **options),
    "at once": streamed,
}
every_join = pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)


@every_join
@pytest.mark.parametrize("again", ["When?", " When?", "\u110b\u1165\u11ab\u110c\u1166?"])
def test_queries_that_share_a_list_are_counted(tmp_path, join, again):
    """Of one question, in whatever spelling; the one whose list it is too counts not."""
    first = "언제?" if again.startswith("\u110b") else "When?"
    golden = [
        {"question": first, "actual": ["a"]},
        {"question": "Who?", "actual": ["c"]},
        *[{"question": again, "actual": ["b"]}] * 2,
    ]
    run = [{"question": first, "predicted": ["a"]}, {"question": "Who?", "predicted": ["c"]}]
    files = written(tmp_path / "g.jsonl", golden), written(tmp_path / "r.jsonl", run)
    with pytest.warns(KragEvalWarning) as caught:
        result, _notes = join(*files)
    (message,) = [str(one.message) for one in caught if "the same list" in str(one.message)]
    assert message.startswith("2 queries of ")
    assert result.averages(1)["macro_recall"] == 0.5  # a and c of a, c, b and b


@every_join
def test_queries_with_ids_share_no_list(tmp_path, join):
    """Two of one question have each its own, and nothing is said."""
    golden = [{"id": n, "question": "When?", "actual": [text]} for n, text in enumerate("ab")]
    run = [{"id": n, "question": "When?", "predicted": [text]} for n, text in enumerate("ab")]
    files = written(tmp_path / "g.jsonl", golden), written(tmp_path / "r.jsonl", run)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result, _notes = join(*files)
    assert not [one for one in caught if "the same list" in str(one.message)]
    assert result.averages(1)["macro_recall"] == 1


@every_join
@pytest.mark.parametrize("n_between", [0, 7])
def test_a_run_that_names_a_question_twice_with_other_documents_is_refused(
    tmp_path, join, n_between
):
    """Which of both was meant nobody knows; in another chunk as in the same one."""
    golden = [{"question": "When?", "actual": ["a"]}]
    golden += [{"question": f"{n}?", "actual": ["x"]} for n in range(n_between)]
    run = [{"question": one["question"], "predicted": ["a"]} for one in golden]
    run.append({"question": "When?", "predicted": ["b"]})
    files = written(tmp_path / "g.jsonl", golden), written(tmp_path / "r.jsonl", run)
    with pytest.raises(DatasetError) as caught:
        join(*files)
    assert caught.value.place == Place(str(files[1]), n_between + 2)
    run[-1]["predicted"] = ["a"]  # the same once more is no question of which
    written(files[1], run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert join(*files)[0].averages(1)["macro_recall"] == 1 / (1 + n_between)
