"""Saved results: everything reads back, texts only if they were saved."""

import errno
import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document
from places import DATA
from reference import TableMatcher
from results_made import MISSING, changed, evaluated, read_back
from trials import trials

from krag_eval import AnyOf, EvaluationResult, compare
from krag_eval.errors import InvalidInput

TABLE = {("a", "p"): 0.1, ("a", "q"): 1 / 3, ("b", "p"): 0.7, ("c", "q"): 0.5}
ARRAYS = (
    "n_retrieved", "item_query", "grade", "n_alternatives", "pair_item", "pair_rank",
    "pair_similarity", "item_number",
)  # fmt: skip


def made(**options):
    """Return a result with grades, alternatives, a repeat, a query without ground truth."""
    actual = [
        [*[Document("a", metadata={"grade": 2})] * 2, AnyOf(["b", "x"])],
        ["c", Document("y", metadata={"grade": 0})],
        [],
    ]
    options = {"no_ground_truth": "skip", "queries": ["u", "왜?", "w"]} | options
    lists = [["p", "q"], ["r", "q"], []]
    return evaluated(actual, lists, TableMatcher(TABLE), (1, 2, None), grade_key="grade", **options)


# --- what reads back -------------------------------------------------------------------------


def test_the_evidence_reads_back_to_the_last_bit(tmp_path):
    """Every array, its type, the threshold."""
    result = made()
    read = read_back(result, tmp_path)
    ours, theirs = result.evidence.relevance, read.evidence.relevance
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name), strict=True)
    assert (theirs.threshold, theirs.n_repeats) == (ours.threshold, ours.n_repeats) == (0.5, 1)
    assert read.evidence.takes_threshold
    assert read.threshold == result.threshold


def test_what_tells_the_ground_truth_reads_back_and_holds_none_of_it(tmp_path):
    """Eight bytes per query, two times eight where documents have ids; never a word."""
    actual = [[Document("a secret passage", id="17", metadata={"page": "seven"})], ["another one"]]
    result = evaluated(actual, [["x"], []])
    read = read_back(result, tmp_path)
    assert list(read.rows.digests) == list(result.rows.digests)
    assert [len(digest) for digest in read.rows.digests] == [33, 16]
    written = (tmp_path / "result.json").read_text("utf-8")
    assert not any(word in written for word in ("secret", "another", "seven"))


def test_a_result_that_0_1_saved_still_opens(tmp_path):
    """It does not know what its ground truth was, and saving it again invents nothing."""
    old = EvaluationResult.from_json(DATA / "result_0.1.0.json")
    assert old.to_dict()["macro_recall@3"] == 2 / 3
    assert old.rows.digests is None
    read = read_back(old, tmp_path)
    assert read == old
    assert read.rows.digests is None


@pytest.mark.filterwarnings("ignore")
def test_everything_but_texts_works_after_reading(tmp_path):
    """Misses, explanations, thresholds, first ranks, intervals, a comparison: the same digits."""
    result = made()
    read = read_back(result, tmp_path)
    zero = made(no_ground_truth="zero")
    read_zero = read_back(zero, tmp_path)
    for ask in (
        lambda one: one.misses().assign(missed=None),  # the texts
        lambda one: one.statuses(1).to_frame(),
        lambda one: one.first_ranks().to_frame(),
        lambda one: one.metrics_at_thresholds(),
        lambda one: one.confidence_intervals(n_resamples=200),
    ):
        pd.testing.assert_frame_equal(ask(read), ask(result))
        pd.testing.assert_frame_equal(ask(read_zero), ask(zero))
    assert read.to_dict()["rejection_rate@1"] == 1.0
    compared = compare({"a": result, "b": read}, metric="ndcg@2", n_resamples=200)
    assert compared.table["difference"].tolist() == [0.0]
    for position in range(3):
        ours, theirs = result.explain(position=position), read.explain(position=position)
        assert theirs.documents == tuple(replace(one, text=None) for one in ours.documents)
        items = tuple(replace(one, alternatives=None, about=()) for one in ours.items)
        assert theirs.items == items
        assert theirs.metrics == ours.metrics
    assert "Texts were not kept" in str(read.explain("u"))
    assert "first to cover item 3" in read.explain("u").to_html()


def test_texts_read_back_where_they_were_asked_for(tmp_path):
    """Alternatives included; and they can be saved again."""
    result = made()
    read = read_back(read_back(result, tmp_path, texts=True), tmp_path, texts=True)
    for position in range(3):
        ours, theirs = result.explain(position=position), read.explain(position=position)
        assert (theirs.items, theirs.documents) == (ours.items, ours.documents)
        assert str(theirs) == str(ours)


def described():
    """Return a result whose documents have ids and metadata, some of it too long to be kept."""
    known = {"source": "a.pdf", "page": 3}
    chunk = {"page_content": "a", "id": 7, "metadata": known | {"x": "y" * 201}}
    again = Document("a", id="7", metadata=known | {"box": [1, 2]})
    return evaluated([[AnyOf([chunk, "b"])], ["c"]], [["b", again], ["a"]])


def test_ids_and_short_metadata_read_back_with_the_texts(tmp_path):
    """Each distinct description once; what is long or a list is left behind."""
    result = described()
    read = read_back(result, tmp_path, texts=True)
    names = ("source", "page", "x", "box")
    assert read.explain(0).documents == result.explain(0).documents
    assert read.explain(0).items == result.explain(0).items
    about = read.explain(0, metadata=names).documents[1].about
    assert about == (("id", "7"), ("source", "a.pdf"), ("page", "3"))
    kept = json.loads((tmp_path / "result.json").read_text("utf-8"))["texts"]["described"]
    assert kept == {
        "distinct": [{"id": "7", "metadata": {"source": "a.pdf", "page": 3}}, {}],
        "actual": [[[0, 1]], [[1]]],
        "predicted": [[1, 0], [1]],
    }
    assert read_back(read, tmp_path, texts=True).explain(0).items == result.explain(0).items


def test_texts_ids_and_metadata_are_not_kept_unless_asked_for(tmp_path):
    """They may be confidential."""
    path = tmp_path / "result.json"
    for result, secret in ((described(), "a.pdf"), (evaluated([["secret"]], [["x"]]), "secret")):
        result.to_json(path)
        assert secret not in path.read_text("utf-8")


def test_a_text_that_recurs_is_kept_once(tmp_path):
    """Chunks come back for one question after another."""
    path = tmp_path / "result.json"
    texts = [f"chunk {i} of a long document" for i in range(5)]
    evaluated([texts[:1]] * 50, [texts] * 50).to_json(path, texts=True)
    assert path.read_text("utf-8").count("chunk 3 of a long document") == 1


def test_texts_that_are_not_there_cannot_be_saved(tmp_path):
    """A result read without them has none."""
    read = read_back(made(), tmp_path)
    with pytest.raises(InvalidInput) as caught:
        read.to_json(tmp_path / "again.json", texts=True)
    assert caught.value.argument == "texts"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_result_without_evidence_can_be_saved(tmp_path):
    """Its numbers read back."""
    bare = replace(made(), evidence=None)
    read = read_back(bare, tmp_path)
    assert read == bare
    assert read.evidence is None


@settings(max_examples=trials(50))
@given(
    st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from("pqr")), st.floats(0, 1)),
    st.lists(st.text(), min_size=3, max_size=3),
)
def test_any_similarity_and_any_label_read_back(tmp_path_factory, table, labels):
    """Floats to the last bit, labels of any characters."""
    actual, predicted = [["a", "b"], ["c"], ["a"]], [["p", "q"], [], ["r"]]
    result = evaluated(actual, predicted, TableMatcher(table), (1, None), queries=labels)
    read = read_back(result, tmp_path_factory.getbasetemp(), "any.json")
    assert read.labels == labels
    ours, theirs = result.evidence.relevance, read.evidence.relevance
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name))


def test_texts_of_any_characters_read_back(tmp_path):
    """Halves of characters, control characters, markup, a quote."""
    texts = ["\ud800", "\x00\x1f\x7f", '</script>"\\', "\u2028\u2029", "é", "e\u0301", "😀"]
    read = read_back(evaluated([texts[4:]], [texts]), tmp_path, texts=True)
    assert read.explain(0).predicted["text"].tolist() == texts


# --- the file --------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    """Return the path of a saved result with texts, ids and metadata."""
    path = tmp_path / "result.json"
    described().to_json(path, texts=True)
    return path


def refused(path, match=r"result\.json: the saved result is damaged"):
    """Tell that a file is refused, by its name."""
    with pytest.raises(InvalidInput, match=match) as caught:
        EvaluationResult.from_json(path)
    return caught.value


def test_similarities_that_are_all_1_take_no_room(saved):
    """Those of a matcher that compares keys; nor do grades that are all 1."""
    kept = json.loads(saved.read_text("utf-8"))["evidence"]
    assert kept["similarity"] is kept["grade"] is kept["number"] is None
    assert (kept["items"], kept["pairs"], kept["rank"]) == ([1, 1], [2, 0], [1, 2])


def test_laying_the_file_out_anew_is_no_damage(saved):
    """A formatter in a repository may do so."""
    before = EvaluationResult.from_json(saved)
    content = json.loads(saved.read_text("utf-8"))
    saved.write_text(json.dumps(content, indent=2, ensure_ascii=True), "utf-8")
    assert EvaluationResult.from_json(saved) == before


@pytest.mark.parametrize(
    "change",
    [
        ("evidence", "rank", 0, 2),
        ("evidence", "threshold", 0.6),
        ("evidence", "takes_threshold", True),
        ("evidence", None),
        ("queries", 0, "another"),
        ("per_query", "1", "retrieved", 0, 7),
        ("metrics", "ndcg@2", 1.0),
        ("keys", "ndcg", "map"),
        ("settings", "threshold", "0.9"),
        ("signature", "matcher=id"),
        ("texts", "distinct", 0, "b"),
        ("checksum", "0" * 64),
        ("checksum", None),
    ],
    ids=str,
)
def test_any_change_is_damage(saved, change):
    """Also one that no average depends on."""
    changed(saved, *change, sealed=False)
    assert "its checksum" in refused(saved).problem


@pytest.mark.parametrize(
    "change",
    [
        *((part, MISSING) for part in ("settings", "averaging_method", "conventions", "metrics",
                                       "keys", "queries", "counted", "per_query", "evidence")),
        *(("per_query", "2", column, MISSING) for column in ("ground_truth", "covered", "rank",
                                                             "precision_base")),
        *(("evidence", "retrieved", value) for value in ([1], [2, 10**9], [10**15, 1],
                                                        None)),
        *(("evidence", "items", value) for value in ([5, 5], [1, -1], {}, [2**62] * 2,
                                                     [10**12, 0])),
        *(("evidence", "pairs", value) for value in ([1, 1, 1], [-1, 1], ["1", 1],
                                                     [10**15, 0], [2**62] * 2)),
        *(("evidence", "rank", 0, value) for value in (0, 9, "1", True)),
        *(("evidence", "similarity", value) for value in ([0.5], [-0.5, 1], [None, 1])),
        ("evidence", "number", [1]),
        ("evidence", "threshold", "high"),
        ("evidence", {}),
        ("texts", "distinct", 0, 7),
        ("texts", "actual", 0, 0, 0, 9),
        *(("texts", "actual", 0, value) for value in ([], [[]])),
        ("texts", "predicted", [[0], [0]]),
        ("texts", "predicted", 0, 0, "0"),
        ("texts", "described", "actual", [[[0, 1]]]),
        ("texts", "described", "actual", 0, 0, [0]),
        ("texts", "described", "predicted", []),
        ("texts", "described", "predicted", None),
        ("texts", "described", "distinct", 0, {"id": [7]}),
        ("texts", "described", "distinct", 0, {"metadata": 7}),
        ("texts", "described", "distinct", 0, {"more": "7"}),
        ("queries", [None, {}]),
        ("queries", "ab"),
        ("queries", ["a"]),
        ("counted", [True]),
        ("counted", [True, False]),
        *((part, 5) for part in ("queries", "counted", "metrics", "per_query", "conventions")),
        ("settings", {"matcher": 5}),
        ("settings", ["matcher"]),
        ("keys", "recall", []),
        ("keys", []),
        ("conventions", "gain=cubic"),
        ("averaging_method", "macro"),
        ("averaging_method", "median"),
        ("gate", "won"),
        ("ground_truth_digest", ["a secret", "b"]),
        ("ground_truth_digest", ["6d6f773a11561dcc"]),
        ("ground_truth_digest", None),
        ("metrics", "ndcg@2", 1.0),
        ("metrics", "extra@2", 1.0),
        ("made", "0001-01-01T00:00:00+14:00"),
        ("per_query", "2", {}),
        ("per_query", "2", MISSING),
        ("per_query", "0", {}),
        ("per_query", "1", "recall", [1.0]),
        *(("per_query", "1", "recall", 0, value) for value in ("1.0", [1.0], None)),
        ("per_query", "1", "recall", 0, 0.25),
        ("per_query", "1", "covered", 0, 10**30),
    ],
    ids=str,
)  # fmt: skip
def test_a_file_that_contradicts_itself_is_refused_whatever_its_checksum(saved, change):
    """Whoever wrote it; nothing is made larger than the file justifies."""
    changed(saved, *change)
    assert "checksum" not in refused(saved).problem


@pytest.mark.parametrize("version", [2, 0, 1.5, "1", True, None])
def test_another_format_version_is_refused_before_anything_is_read(saved, version):
    """Whatever else the file holds; the message says which came and which is read."""
    saved.write_text(json.dumps({"format": "krag_eval.result", "format_version": version}))
    said = rf"result\.json: saved in format {version!r}, .*reads format 1; a newer version may"
    assert refused(saved, said).fix


@pytest.mark.parametrize("part", ["format_version", "checksum"])
def test_a_file_without_version_or_checksum_is_damaged(saved, part):
    """It is not of a newer version, which would say so."""
    changed(saved, part, MISSING, sealed=False)
    assert "newer version" not in str(refused(saved))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\r\n\x1a\n\x00\xff",
        b"{",
        b"[" * 100_000,
        b"[]",
        b"null",
        b"{}",
        b'{"format": "other"}',
        b'{"metrics": {"ndcg@5": 0.5}}',
        b"[" + b"9" * 10_000 + b"]",  # which Python refuses by an error of its own
        *(slice(-cut) for cut in (1, 2, 30, 200)),
    ],
    ids=str,
)
def test_another_file_is_refused_by_name(saved, content):
    """Empty, binary, cut off, deeply nested, or of another kind."""
    saved.write_bytes(saved.read_bytes()[content] if isinstance(content, slice) else content)
    assert "to_json" in refused(saved, r"result\.json: not a saved krag_eval result").fix


def test_a_file_that_is_not_there_is_named(tmp_path):
    """For who reads it, and for code that catches it."""
    path = tmp_path / "nope.json"
    with pytest.raises(FileNotFoundError) as caught:
        EvaluationResult.from_json(path)
    assert str(caught.value) == f"{path}: no such file; check the path."
    assert caught.value.errno == errno.ENOENT
