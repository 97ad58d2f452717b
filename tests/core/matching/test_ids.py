"""Ids that look the same are the same, and those that differ in writing alone are named."""

import io
import json
import unicodedata
import warnings

import pytest

from krag_eval import (
    ExactTextMatcher,
    IdMatcher,
    MetadataMatcher,
    OfflineRetrievalEvaluator,
    audit,
    evaluate_file,
    evaluate_retriever,
    load_dataset,
)
from krag_eval.core.matching.near import kinds_of
from krag_eval.datasets import Dataset, read_beir, read_trec
from krag_eval.partitions import PartitionPlan

# Names of files as a Mac writes them, and as everybody else does; both show the same.
NAMES = ["규정.pdf", "Gebühren.md", "が.txt"]
FORMS = ("NFC", "NFD")


def form(name, *texts):
    """Return texts in a form of Unicode."""
    return [unicodedata.normalize(name, text) for text in texts]


def said(evaluate):
    """Return a result and what was warned of."""
    with warnings.catch_warnings(record=True) as messages:
        warnings.simplefilter("always")
        return evaluate(), [str(one.message) for one in messages]


def _lists(folder, actual, predicted):
    return OfflineRetrievalEvaluator(actual, predicted, "id").evaluate(2)


def _documents(folder, actual, predicted):
    lists = ([[{"page_content": "x", "id": one} for one in some] for some in side]
             for side in (actual, predicted))  # fmt: skip
    return OfflineRetrievalEvaluator(*lists, "id").evaluate(2)


def _saved(folder, actual, predicted):
    rows = [{"id": f"q{at}", "question": f"{at}?", "actual": some, "predicted": found}
            for at, (some, found) in enumerate(zip(actual, predicted, strict=True))]  # fmt: skip
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def _file(folder, actual, predicted):
    return load_dataset(_saved(folder, actual, predicted)).evaluator(matcher="id").evaluate(2)


def _stream(folder, actual, predicted):
    return evaluate_file(_saved(folder, actual, predicted), 2, chunk_size=1, matcher="id")


def _two_files(folder, actual, predicted):
    path = _saved(folder, actual, predicted)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    run = [{"id": row["id"], "predicted": row["predicted"]} for row in rows]
    golden = [{name: row[name] for name in ("id", "question", "actual")} for row in rows]
    return load_dataset(golden, retrieved=run).evaluator(matcher="id").evaluate(2)


def _retriever(folder, actual, predicted):
    found = {f"{at}?": some for at, some in enumerate(predicted)}
    rows = [{"question": f"{at}?", "actual": some} for at, some in enumerate(actual)]
    return evaluate_retriever(found.get, rows, 2, matcher="id")


def _part(folder, actual, predicted):
    plan = PartitionPlan.of(2, matcher="id")
    return plan.result([plan.evaluate(actual, predicted).partial])


DOORS = [_lists, _documents, _file, _stream, _two_files, _retriever, _part]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("own", FORMS)
@pytest.mark.parametrize("other", FORMS)
def test_ids_in_any_form_are_equal(tmp_path, door, own, other):
    """Each query finds its document, and where the forms differ a sentence counts those ids."""
    actual = [[one] for one in form(own, *NAMES)]
    predicted = [[one, "x"] for one in form(other, *NAMES)]
    result, messages = said(lambda: door(tmp_path, actual, predicted))
    assert result.averages(2)["macro_recall"] == 1
    told = [one for one in messages if "Unicode form" in one]
    assert bool(told) == (own != other)
    if told and door is not _stream:
        assert told[0].startswith("3 ")


def test_an_index_gives_texts_to_ids_in_any_form():
    """Chunks of an index, whose names came from another machine."""
    nfc, nfd = (form(one, *NAMES) for one in FORMS)
    chunks = [{"id": one, "text": f"text of {at}"} for at, one in enumerate(nfc)]
    row = {"question": "?", "actual": ["text of 1"], "predicted": nfd}
    dataset = load_dataset([row], corpus=chunks)
    assert dataset.evaluator().calculate_mrr() == {"mrr": 0.5}
    found = audit(load_dataset([{"question": "?", "actual": [{"id": nfd[0]}]}]), chunks)
    assert found.findings["dangling"].rows == ()


def test_judged_and_unwanted_documents_are_known_in_any_form():
    """By hand: one of two is unwanted, and both are judged."""
    nfc, nfd = (form(one, *NAMES) for one in FORMS)
    how = {"judged": [[nfd[1]]], "unwanted": [[nfd[1]]]}
    evaluator = OfflineRetrievalEvaluator([[nfc[0]]], [[nfc[0], nfc[1]]], "id", **how)
    result = evaluator.evaluate(2, metrics=["judged", "unwanted"])
    assert result.tables[2]["judged"].tolist() == [1]
    assert result.tables[2]["unwanted"].tolist() == [0.5]


def test_collections_join_ids_in_any_form():
    """TREC's lines, and BEIR's corpus and queries."""
    nfc, nfd = (form(one, *NAMES) for one in FORMS)
    qrels, run = {nfc[2]: {nfc[0]: 1}}, {nfc[2]: {nfd[0]: 1.0}}
    result, _messages = said(lambda: read_trec(qrels, run).evaluator().calculate_mrr())
    assert result == {"mrr": 1}
    corpus = io.StringIO(json.dumps({"_id": nfd[0], "text": "Nine."}))
    queries = io.StringIO(json.dumps({"_id": nfd[2], "text": "When?"}))
    dataset = read_beir(qrels=qrels, run=run, corpus=corpus, queries=queries)
    assert [one["page_content"] for one in dataset.actual[0]] == ["Nine."]
    assert dataset.questions == ["When?"]


@pytest.mark.parametrize("matcher", ["id", "text"])
@pytest.mark.parametrize(
    ("wanted", "retrieved"),
    # The characters of Unicode 16 whose NFC is ASCII: KELVIN SIGN, GREEK QUESTION MARK, VARIA.
    [("300K", "300\u212a"), ("a;b", "a\u037eb"), ("a`b", "a\u1fefb")],
)
def test_characters_that_are_ascii_in_composed_form_are_equal_to_it(matcher, wanted, retrieved):
    """Ground truth of ASCII alone finds them, in lists of texts as well as one by one."""
    assert unicodedata.normalize("NFC", retrieved) == wanted
    evaluator = OfflineRetrievalEvaluator([[wanted]], [["other", retrieved]], matcher=matcher)
    recall, _messages = said(lambda: evaluator.calculate_recall(2))
    assert recall["macro_recall"] == 1


@pytest.mark.parametrize("base", [IdMatcher, ExactTextMatcher])
def test_keys_of_a_subclass_are_read_where_it_says_so(base):
    """It says that texts are not their own keys, and its key is compared, whatever they hold."""

    class Folded(base):
        def key(self, document, where="document"):
            return document.casefold()

        def own_keys(self, texts):
            return False

    evaluator = OfflineRetrievalEvaluator([["doc1"]], [["other", "DOC1"]], matcher=Folded())
    assert evaluator.calculate_recall(2)["macro_recall"] == 1


def test_ids_are_saved_as_they_are_written(tmp_path):
    """Only their comparison is by form."""
    (identity,) = form("NFD", NAMES[0])
    dataset = Dataset(["q"], [[{"page_content": "a", "id": identity}]], [[identity]])
    dataset.save(tmp_path / "saved.jsonl")
    assert load_dataset(tmp_path / "saved.jsonl").actual[0][0]["id"] == identity


def test_one_pair_is_compared_alike():
    """The door for a single pair."""
    own, other = form("NFC", NAMES[0]) + form("NFD", NAMES[0])
    assert IdMatcher().similarity(own, other) == 1


NEAR = [
    ("A1", "a1", ["case"]),
    ("007", "7", ["leading zeros"]),
    ("doc-007", "doc-7", ["leading zeros"]),
    ("d 1", "d1 ", ["spaces"]),
    ("7", "7.0", ["a .0"]),
    ("007", "7.0", ["leading zeros", "a .0"]),
]


@pytest.mark.parametrize(("own", "other", "kinds"), NEAR)
@pytest.mark.parametrize("matcher", ["id", "text", MetadataMatcher("doc")])
def test_keys_that_differ_in_writing_are_named(own, other, kinds, matcher):
    """Where half of the ground truth or more is not found; they stay two."""
    lists = [[[own], ["b"]], [[other], ["b"]]]
    if isinstance(matcher, MetadataMatcher):
        lists = [[[{"page_content": "", "metadata": {"doc": one}} for one in some] for some in side]
                 for side in lists]  # fmt: skip
    evaluator = OfflineRetrievalEvaluator(*lists, matcher)
    recall, messages = said(lambda: evaluator.calculate_recall(1)["macro_recall"])
    assert recall == 0.5
    (message,) = [one for one in messages if "spelling" in one]
    assert "1 of 2" in message
    assert repr(own)[1:-1] in message
    assert kinds_of(own, other) == kinds


@pytest.mark.parametrize(("own", "other", "kinds"), NEAR)
def test_they_are_named_in_streams_as_well(tmp_path, own, other, kinds):
    """Once for all parts, which do not know each other's examples."""
    path = _saved(tmp_path, [[own], [own]], [[other], [other]])
    _result, messages = said(lambda: evaluate_file(path, 1, chunk_size=1, matcher="id"))
    (message,) = [one for one in messages if "spelling" in one]
    assert "2 of 2" in message


@pytest.mark.parametrize(
    ("actual", "predicted"),
    [
        ([["a"], ["b"]], [["c"], ["b"]]),
        ([["A1"], ["b"], ["c"]], [["a1"], ["b"], ["c"]]),
        ([["1.5"], ["b"]], [["15"], ["b"]]),
        ([["10"], ["b"]], [["1"], ["b"]]),
        ([["x" * 300], ["b"]], [["X" * 300], ["b"]]),
        ([["it opens at nine in may"], ["b"]], [["It opens at nine in May"], ["b"]]),
    ],
    ids=["others", "most are found", "a fraction", "a zero behind", "a long text", "a sentence"],
)
def test_other_keys_are_not_named(actual, predicted):
    """No message where there is nothing to tell, or most is found."""
    _recall, messages = said(OfflineRetrievalEvaluator(actual, predicted, "id").calculate_mrr)
    assert not [one for one in messages if "spelling" in one]
