"""Ground truth and a run in two files, as people keep them."""

import json
import unicodedata
import warnings
from dataclasses import replace

import pytest

from krag_eval import KragEvalWarning, compare, evaluate_file, load_dataset
from krag_eval.core import muted
from krag_eval.datasets import Dataset
from krag_eval.errors import DatasetError, InvalidInput, InvalidType

GOLDEN = [
    {"id": "q1", "question": "When?", "actual": ["nine"], "topic": "hours"},
    {"id": 2, "question": "Where?", "actual": ["here", "there"], "topic": "place"},
    {"id": "q16", "question": "Who?", "actual": ["all"], "topic": "place"},
]
RUN = [
    {"id": "q16", "predicted": ["few", "all"], "ms": 12},
    {"id": "q1", "predicted": ["nine"], "ms": 15},
    {"id": "2", "predicted": ["there"], "ms": 11},
]
FOUND = [["nine"], ["there"], ["few", "all"]]


def rows(given, **changed):
    """Return rows with some fields left out, or others in their place."""
    return [{k: one for k, one in {**row, **changed}.items() if one is not None} for row in given]


def written(path, given):
    path.write_text("".join(json.dumps(one) + "\n" for one in given), "utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    return written(tmp_path / "golden.jsonl", GOLDEN), written(tmp_path / "run.jsonl", RUN)


ASKED = [{**row, "question": asked, "id": None} for row, asked in
         zip(RUN, ("Who?", "When?", "Where?"), strict=True)]  # fmt: skip


@pytest.mark.parametrize(
    "run",
    [
        RUN,
        rows(ASKED),
        [{**row, "question": f" {row['question']}\n"} for row in rows(ASKED)],
        {"q1": FOUND[0], "2": FOUND[1], "q16": FOUND[2]},
        {"When?": FOUND[0], "Where?": FOUND[1], "Who?": FOUND[2]},
        Dataset(["q1", "2", "q16"], [[]] * 3, FOUND),
        {name: [row[name] for row in RUN] for name in ("id", "predicted")},
        [{"id": row["id"], "retrieved_contexts": row["predicted"]} for row in RUN],
    ],
)
def test_rows_join_by_id_or_question(run):
    """The order of the rows does not matter, nor white space, nor whether an id is a number."""
    joined = load_dataset(GOLDEN, retrieved=run)
    assert (joined.queries, joined.predicted) == (["When?", "Where?", "Who?"], FOUND)
    assert joined.tags["topic"] == ["hours", "place", "place"]


def test_decomposed_letters_join():
    """MacOS writes Hangul in its parts."""
    golden = [{"question": "\uc5b8\uc81c?", "actual": ["a"]}]
    run = [{"question": "\u110b\u1165\u11ab\u110c\u1166?", "predicted": ["a"]}]
    assert load_dataset(golden, retrieved=run).predicted == [["a"]]


def test_formats_mix(tmp_path):
    """Ground truth may be a table, what was retrieved JSON lines, and a run brings its own tags."""
    golden = tmp_path / "golden.csv"
    golden.write_text('id,question,actual\nq1,When?,"[""nine""]"\n', "utf-8")
    joined = load_dataset(golden, retrieved=written(tmp_path / "run.jsonl", RUN[1:2]))
    assert (joined.predicted, joined.tags) == ([["nine"]], {"id": ["q1"], "ms": [15]})
    assert joined.run[0].line == 1


def test_ids_join_ids():
    """A run of ids alone is compared by ids, also as scores by document."""
    golden = [{"id": "q1", "expected_ids": ["a"]}, {"id": "q2", "expected_ids": ["b"]}]
    scores = {"q2": {"b": 0.5, "c": 0.7}, "q1": {"a": 1.0}}
    lists = [{"id": "q1", "retrieved_ids": ["a"]}, {"id": "q2", "retrieved_ids": ["c", "b"]}]
    for run in (scores, lists):
        result = load_dataset(golden, retrieved=run).evaluator().evaluate(1)
        assert result.per_query()["recall"].tolist() == [1, 0]


@pytest.mark.parametrize(("missing", "found"), [("zero", [["nine"], [], []]), ("skip", [["nine"]])])
def test_what_a_run_lacks_is_told(missing, found):
    with pytest.warns(KragEvalWarning):
        assert load_dataset(GOLDEN, retrieved=RUN[1:2], missing=missing).predicted == found


def test_other_queries_of_a_run_are_told():
    with pytest.warns(KragEvalWarning):
        assert load_dataset(GOLDEN[:1], retrieved=RUN).predicted == FOUND[:1]


@pytest.mark.parametrize(
    ("golden", "run"),
    [
        (GOLDEN, RUN[:2]),
        (GOLDEN, [{"id": "x", "predicted": []}]),
        (GOLDEN, [*RUN, RUN[0]]),
        ([*GOLDEN, GOLDEN[0]], RUN),
        (rows(GOLDEN, id=None), [*rows(ASKED), {"question": "Who?", "predicted": ["x"]}]),
        (rows(GOLDEN, id=None, question=None), rows(RUN, id=None)),
        (GOLDEN, rows(RUN, predicted=None)),
        (GOLDEN, rows(RUN, predicted=7)),
        (GOLDEN, [{"id": "q1", "retrieved_ids": ["a"]}]),
        (GOLDEN, []),
        (GOLDEN, [{**row, "question": "Who?"} for row in RUN]),
        (GOLDEN, [{**row, "unwanted": ["x"]} for row in RUN]),
    ],
)
def test_what_does_not_join_is_refused(golden, run):
    """Nothing is dropped, repeated or guessed."""
    with pytest.raises(DatasetError):
        load_dataset(golden, retrieved=run)


@pytest.mark.parametrize(
    ("golden", "run", "nameless"),
    [
        (rows(GOLDEN, id=None), RUN, "golden.jsonl:1"),
        (GOLDEN, [{"question": "Who?", "predicted": []}, *RUN[1:]], "run.jsonl:1"),
        (GOLDEN, [RUN[0], {"question": "When?", "predicted": []}, RUN[2]], "run.jsonl:2"),
    ],
)
def test_the_side_that_lacks_ids_is_named(tmp_path, golden, run, nameless):
    """Where a run has no questions to join by instead."""
    paths = written(tmp_path / "golden.jsonl", golden), written(tmp_path / "run.jsonl", run)
    for read in (lambda: load_dataset(paths[0], retrieved=paths[1]), lambda: evaluate_file(*paths)):
        with pytest.raises(DatasetError) as refused, muted():
            read()
        assert refused.value.file == str(paths[1])
        assert str(tmp_path / nameless) in refused.value.problem


def test_an_empty_run_is_one_without_rows(files):
    """And not one whose columns have other names."""
    files[1].write_text("\n", "utf-8")
    with pytest.raises(DatasetError) as refused:
        load_dataset(files[0], retrieved=files[1])
    assert (refused.value.place.name, refused.value.fix) == (str(files[1]), "")


def test_missing_is_about_a_run():
    for options in ({"missing": "zero"}, {"missing": "all", "retrieved": RUN}):
        with pytest.raises(InvalidInput) as refused:
            load_dataset(GOLDEN, **options)
        assert refused.value.argument == "missing"


def test_a_line_of_the_run_is_named(files):
    """What cannot be read in the run is not blamed on the ground truth."""
    golden, run = files
    written(run, [RUN[0], {"id": "q1", "predicted": [7]}, RUN[2]])
    with pytest.raises(DatasetError) as refused:
        load_dataset(golden, retrieved=run)
    assert (refused.value.place.name.endswith("run.jsonl"), refused.value.place.line) == (True, 2)


def test_an_id_names_its_query():
    result = load_dataset(GOLDEN, retrieved=RUN).evaluator().evaluate(5)
    assert result.explain("q16").query == result.explain("Who?").query == "Who?"


@pytest.mark.filterwarnings("ignore:The intervals rest on")
def test_a_question_that_was_worded_anew_is_the_same_by_its_id():
    """Both questions of an id are compared; without ids they are different queries."""
    before = load_dataset(GOLDEN, retrieved=RUN).evaluator().evaluate(5)
    worded = [{**row, "question": row["question"].replace("Who?", "Who?!")} for row in GOLDEN[::-1]]
    after = load_dataset(worded, retrieved=RUN).evaluator().evaluate(5)
    found = compare({"before": before, "after": after}, "recall@5", n_resamples=100)
    assert found.queries == ["When?", "Where?", "Who?!"]
    assert found.table["difference"].tolist() == [0]
    nameless = {name: replace(one, rows=replace(one.rows, tags={}))
                for name, one in (("before", before), ("after", after))}  # fmt: skip
    with pytest.raises(InvalidInput):
        compare(nameless, "recall@5", n_resamples=100)


def test_numbers_of_rows_are_no_ids_of_questions():
    """Where ids name mostly other questions, queries are paired by these."""

    def result(first):
        golden = [{"id": n, "question": f"{n + first}?", "actual": ["a"]} for n in range(40)]
        return (
            load_dataset(golden, retrieved={str(n): ["a"] for n in range(40)})
            .evaluator()
            .evaluate(1)
        )

    results = {"a": result(0), "b": result(2)}
    assert len(compare(results, "recall@1", on="common", n_resamples=100).queries) == 38
    with pytest.raises(InvalidInput):
        compare(results, "recall@1", n_resamples=100)


def test_a_run_of_other_questions_with_the_same_ids_is_refused(tmp_path):
    """Most questions differ: the ids were given anew, and no verdict may rest on that run."""
    asked = [
        {**row, "question": other} for row, other in zip(RUN, ("Who?", "Why?", "How?"), strict=True)
    ]
    with pytest.raises(DatasetError) as refused:
        load_dataset(GOLDEN, retrieved=written(tmp_path / "run.jsonl", asked))
    assert (refused.value.place.name.endswith("run.jsonl"), refused.value.place.line) == (True, 2)


def test_a_few_other_questions_are_told():
    """They may be worded anew; white space is no other wording."""
    asked = [{**row, "question": other} for row, other in
             zip(RUN, (" Who?", "At what time?", "Where?"), strict=True)]  # fmt: skip
    with pytest.warns(KragEvalWarning, match="^1 of the 3 .*'q1'") as told:
        assert load_dataset(GOLDEN, retrieved=asked).predicted == FOUND
    assert len(told) == 1


def test_questions_that_look_like_ids_join_by_question():
    golden = [{"id": 0, "question": "2024", "actual": ["a"]},
              {"id": 2024, "question": "B?", "actual": ["b"]}]  # fmt: skip
    run = {"2024": ["a"], "B?": ["b"]}
    assert load_dataset(golden, retrieved=run).predicted == [["a"], ["b"]]


def test_what_a_golden_set_says_was_cited_is_told(files):
    """An answer cites what a run retrieved; in memory as streamed."""
    written(files[0], [{**row, "cited": ["nine"]} for row in GOLDEN])
    for read in (load_dataset, evaluate_file):
        notes = read(files[0], retrieved=files[1]).notes
        assert sum("was cited is not used" in note for note in notes) == 1


def test_tags_of_both_are_told():
    """Those of the ground truth stay."""
    run = [{**row, "topic": "other"} for row in RUN]
    joined = load_dataset(GOLDEN, retrieved=run)
    assert joined.tags["topic"] == ["hours", "place", "place"]
    assert "topic" in joined.notes[-1]


CHUNKS = [{"id": "c1", "text": "At nine."}, {"id": "c2", "text": "At ten."}]


@pytest.mark.parametrize(
    ("actual", "retrieved", "matcher", "hits"),
    [
        ("At nine.", ["c2", "c1"], None, [0, 1]),
        ("c1", ["c2", "c1"], None, [0, 1]),  # in columns that say nothing: by their texts
        ("At nine.", ["c9", "c1"], None, [0, 1]),  # one that the index lacks matches nothing
        ("c1", ["At nine."], None, [1]),
    ],
)
def test_an_index_gives_ids_their_texts(actual, retrieved, matcher, hits):
    """On either side, where any is the id of a chunk."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_dataset([{"question": "When?", "actual": [actual]}],
                               retrieved={"When?": retrieved}, corpus=CHUNKS)  # fmt: skip
        found = [dataset.evaluator(matcher="contains").calculate_hit_rate(k=k + 1)["hit_rate"]
                 for k in range(len(hits))]  # fmt: skip
    assert bool(caught) == ("c9" in retrieved)
    assert dataset.defaults.get("matcher") == matcher
    assert found == hits


def test_ids_stay_ids_beside_their_texts():
    """Columns of ids say so: they are compared by id, and a matcher of texts can be chosen."""
    dataset = load_dataset([{"question": "When?", "relevant_chunk_ids": ["c1"]}],
                           retrieved=[{"question": "When?", "retrieved_ids": ["c1"]}],
                           corpus=CHUNKS)  # fmt: skip
    assert dataset.defaults["matcher"] == "id"
    assert dataset.predicted == [[{"page_content": "At nine.", "id": "c1"}]]


def test_ids_beside_passages_ask_for_an_index():
    """No matcher of texts can compare them; where both sides are words, nobody knows."""
    run = [{"question": "When?", "predicted": ["c1", "c2"]}]
    for truth, is_named in (("at nine", True), ("nine", False)):
        dataset = load_dataset([{"question": "When?", "actual": [truth]}], retrieved=run)
        with pytest.warns(KragEvalWarning) as told:
            dataset.evaluator().evaluate(1)
        assert [one for one, _ in getattr(told[0].message.fix, "settings", ())].count("corpus") == (
            is_named
        )


def test_an_id_that_two_chunks_have_is_refused_on_its_line(tmp_path):
    """Blank lines count; in memory there is no line."""
    path = tmp_path / "chunks.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n\n{"id": "a", "text": "y"}\n', "utf-8")
    with pytest.raises(InvalidInput) as refused:
        load_dataset(GOLDEN, retrieved=RUN, corpus=path)
    assert (refused.value.file, refused.value.line) == (str(path), 3)
    with pytest.raises(InvalidInput) as refused:
        load_dataset(GOLDEN, retrieved=RUN, corpus=[{"id": "a", "page_content": "x"}] * 2)
    assert (refused.value.argument, refused.value.place) == ("corpus", None)


def test_a_row_of_a_run_that_is_none_is_named():
    with pytest.raises(InvalidType) as refused:
        load_dataset(GOLDEN, retrieved=[RUN[0], ["c1"]])
    assert (refused.value.argument, refused.value.query) == ("retrieved", 1)


def test_an_index_of_other_ids_is_refused():
    """Or one with an id twice, of which nobody knows the text."""
    rows = [{"question": "When?", "actual": ["c1"], "predicted": ["c2"]}]
    for corpus in ([{"id": "d1", "text": "At nine."}], [*CHUNKS, CHUNKS[0]]):
        with pytest.raises(InvalidInput) as caught:
            load_dataset(rows, corpus=corpus)
        assert caught.value.argument == "corpus"


@pytest.mark.parametrize("tags", [False, ["topic"]])
def test_ids_join_whether_they_are_kept_or_not(tags):
    """A run by id alone; the tags are those that were chosen."""
    dataset = load_dataset(GOLDEN, retrieved=RUN, tags=tags)
    assert dataset.predicted == FOUND
    assert [*dataset.tags] == (tags or [])


def test_a_tag_that_is_not_there_is_refused_of_two_files():
    """As of one."""
    with pytest.raises(DatasetError):
        load_dataset(GOLDEN, retrieved=RUN, tags=["topics"])


def test_whole_numbers_name_queries_of_a_dict():
    """As the ids of the ground truth do."""
    golden = [{"id": 1, "question": "When?", "actual": ["nine"]}]
    assert load_dataset(golden, retrieved={1: ["nine"]}).predicted == [["nine"]]


def test_plain_texts_of_a_run_are_the_ids_that_ground_truth_names():
    """A golden set with texts beside its ids, as re-anchoring writes it, and a run of bare ids."""
    rows = [{"id": "q", "actual": [{"id": "c1", "page_content": "At nine."}]}]
    golden = replace(load_dataset(rows), defaults={"matcher": "id"})
    dataset = load_dataset(golden, retrieved=[{"id": "q", "predicted": ["c2", "c1"]}])
    assert dataset.evaluator().calculate_mrr() == {"mrr": 1 / 2}
    texts = load_dataset(golden, retrieved=[{"id": "q", "predicted": ["At ten.", "At nine."]}])
    assert texts.defaults.get("matcher") is None


def test_ids_join_however_their_letters_are_composed():
    """File systems of macOS write names in NFD."""
    golden = [{"id": unicodedata.normalize("NFD", "안내-1"), "actual": ["At nine."]}]
    run = [{"id": unicodedata.normalize("NFC", "안내-1"), "predicted": ["At nine."]}]
    assert load_dataset(golden, retrieved=run).predicted == [["At nine."]]
