"""Spans of sources: how much of one another holds, by its place alone."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner
from langchain_core.documents import Document
from matched import copies, found, matches_of, rows_of
from reference import no_advice
from reference_pieces import METRICS, Found, Query, Rules
from trials import trials, tries_fewer

from krag_eval import (
    AnyOf,
    CoverageMatcher,
    EvaluationResult,
    Index,
    OfflineRetrievalEvaluator,
    SpanMatcher,
    evaluate_file,
    load_dataset,
)
from krag_eval.cli import main
from krag_eval.core.matching.names import matcher_of_signature
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.loading.loading import read_chunks

CUTOFFS = [1, 2, 4, None]
OF_WORDS = ["token_recall", "token_precision", "token_iou", "redundancy"]


def span(start, end, source="a.md", **others):
    """Return a span of characters."""
    return {"source": source, "start": start, "end": end, **others}


def chunk(first, text, key="start_index", **metadata):
    """Return a chunk as a splitter writes it."""
    return Document(text, metadata={"source": "a.md", key: first, **metadata})


TRUTH = span(100, 300)


# --- one pair --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (span(0, 250), 150 / 200),
        (span(250, 900), 50 / 200),
        (span(120, 130), 10 / 200),
        (span(100, 300), 1.0),
        (span(0, 1000), 1.0),
        (span(0, 100), 0.0),  # it ends where the truth begins
        (span(300, 400), 0.0),
        (span(150, 150), 0.0),  # a chunk of nothing
        (span(0, 1000, "b.md"), 0.0),
        ({"page_content": "of no importance", "metadata": span(0, 250)}, 0.75),
        (Document("", metadata=span(np.int64(0), 250)), 0.75),
        (chunk(0, "x" * 250), 0.75),
        (chunk(0, "서" * 250, "split_idx_start"), 0.75),
        (chunk(0, "x" * 250, start=0, end=250), 0.75),  # twice the same
        (chunk(0, "x" * 250, lines=None, start=float("nan"), end=9), 0.75),
    ],
)
def test_the_share_of_the_truth_that_a_document_holds(document, expected):
    """Of 200 characters, whatever the text is; without a source in common, nothing."""
    assert SpanMatcher().similarity(TRUTH, document) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [([10, 24], 1.0), ((1, 12), 3 / 15), ([24, 24], 1 / 15), (np.array([25, 30]), 0.0)],
)
def test_lines_are_counted_with_the_last_one(lines, expected):
    """Lines 10 to 24 are 15."""
    document = Document("", metadata={"source": "a.md", "lines": lines})
    assert SpanMatcher().similarity({"source": "a.md", "lines": [10, 24]}, document) == expected


@pytest.mark.parametrize("key", ["file.name", "file.name+page"])
def test_a_source_may_have_another_name(key):
    """It may lie within other metadata, and have several parts, which must all agree."""
    sides = [
        {"page_content": "", "metadata": {"file": {"name": "a.pdf"}, "page": page, **bounds}}
        for page, bounds in [(1, {"start": 0, "end": 9}), (2, {"start": 0, "end": 9})]
    ]
    matcher = SpanMatcher(source_key=key)
    assert matcher.similarity(*sides) == float("page" not in key)
    assert matcher.similarity(sides[0], sides[0]) == 1.0


def test_a_splitter_writes_what_is_read():
    """One of LangChain's chunks holds a sentence of its text, and none of another text does."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    text = "".join(f"Sentence {n} of the library's rules. " for n in range(60))
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=300, chunk_overlap=60, add_start_index=True
    )
    chunks = splitter.create_documents([text, text], [{"source": "a.md"}, {"source": "b.md"}])
    start = text.index("Sentence 31")
    truth = span(start, start + len("Sentence 31 of the library's rules."))
    held = {
        chunks[rank - 1].metadata["source"]: similarity
        for _, rank, similarity in found(SpanMatcher(), [[truth]], [chunks])
    }
    assert held == {"a.md": 1.0}


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ("a plain text", InvalidInput),
        ({"page_content": "a", "metadata": {"start": 0, "end": 9}}, InvalidInput),
        (Document("a", metadata={"source": "a.md"}), InvalidInput),
        (Document("a", metadata={"source": "a.md", "start": 0}), InvalidInput),
        (Document("a", metadata={"source": " ", "start_index": 0}), InvalidInput),
        (Document("a", metadata={"source": ["a.md"], "start_index": 0}), InvalidType),
        (chunk(-1, "a chunk that was not found"), InvalidInput),
        (chunk(5, ""), InvalidInput),
        (chunk(5, "abc", lines=[1, 2]), InvalidInput),
        (chunk(5, "abc", start=5, end=9), InvalidInput),
        (span(-1, 9), InvalidInput),
        (span(9, 8), InvalidInput),
        (span(0, 10**30), InvalidInput),
        (span(0.0, 9), InvalidType),
        (span(0, "9"), InvalidType),
        (span(False, 9), InvalidType),
        *(
            ({"source": "a.md", "lines": lines}, kind)
            for lines, kind in [
                ([0, 3], InvalidInput),
                ([3, 2], InvalidInput),
                ([1, 2, 3], InvalidInput),
                (12, InvalidInput),
                ("10-24", InvalidInput),
                ([1, True], InvalidType),
                ([1.0, 2], InvalidType),
            ]
        ),
    ],
)
@pytest.mark.parametrize("side", ["actual_docs", "predicted_docs"])
def test_a_document_that_does_not_say_where_it_stands_is_refused(document, kind, side):
    """On either side, by its place: it could only be counted as wrong by accident."""
    lists = {"actual_docs": [[TRUTH], [TRUTH]], "predicted_docs": [[TRUTH], [TRUTH]]}
    lists[side][1] = [TRUTH, document]
    with pytest.raises(kind) as caught:
        OfflineRetrievalEvaluator(**lists, matcher="spans").evaluate(5)
    assert (caught.value.argument, caught.value.query, caught.value.within) == (side, 1, "[1]")


@pytest.mark.parametrize(
    ("actual", "predicted", "argument"),
    [
        ([[TRUTH]], [[{"source": "b.md", "lines": [1, 2]}]], "predicted_docs"),
        ([[TRUTH], [AnyOf([TRUTH, {"source": "b.md", "lines": [1, 2]}])]], [[]] * 2, "actual_docs"),
        ([[TRUTH], [span(5, 5)]], [[TRUTH]] * 2, "actual_docs"),
    ],
)
def test_two_units_and_an_empty_truth_are_refused(actual, predicted, argument):
    """Characters and lines cannot be compared, and a share of nothing is none."""
    with pytest.raises(InvalidInput) as caught:
        matches_of(SpanMatcher(), actual, predicted)
    assert (caught.value.argument, caught.value.query) == (argument, len(actual) - 1)


@pytest.mark.parametrize(
    "document",
    [
        {"source": "a.md", "start": 1},
        {"source": "a.md", "start": 1, "end": 2, "lines": [1, 2]},
        {"source": "a.md", "lines": [1, 2], "metadata": {"lines": [3, 4]}},
        {"source": "a.md", "lines": [1, 2], "metadata": ["x"]},
    ],
)
def test_a_dict_of_its_own_names_one_span(document):
    """With a part of it, or with two, it is no document."""
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        OfflineRetrievalEvaluator([[document]], [[TRUTH]])
    assert caught.value.argument == "actual_docs"


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"threshold": 2}, "threshold"), ({"source_key": ""}, "source_key"),
     ({"source_key": "source+"}, "source_key"), ({"source_key": 3}, "source_key"),
     ({"union": "yes"}, "union")],
)  # fmt: skip
def test_settings_are_checked(options, argument):
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        SpanMatcher(**options)
    assert caught.value.argument == argument


# --- all metrics, against the definition -----------------------------------------------------


def random_span(source, longest):
    """Return a span of one of two short sources."""
    start = source.randrange(20)
    return span(start, start + source.randint(1, longest), source.choice(["a.md", "b.md"]))


def as_text(one):
    """Return the characters of a span, each a word that is nowhere else."""
    return [f"{one['source']}{place}" for place in range(one["start"], one["end"])]


def random_query(source):
    """Return items, each of one to three spans, and documents that repeat and overlap."""
    items = [
        [random_span(source, 8) for _ in range(source.choice([1, 1, 1, 2, 3]))]
        for _ in range(source.randint(1, 4))
    ]
    documents = [random_span(source, 12) for _ in range(source.randint(0, 7))]
    return items, documents + source.sample(documents, len(documents) // 3)


@tries_fewer
@pytest.mark.parametrize("union", [False, True], ids=["one_chunk", "union"])
def test_agrees_with_the_definition_of_words(union):
    """Where each character is a word of its own, spans are sets of words: every metric is equal."""
    source = random.Random(7)
    for _ in range(trials(120)):
        queries = [random_query(source) for _ in range(source.randint(1, 4))]
        threshold = source.choice([0.0, 0.3, 0.5, 0.8, 1.0])
        evaluator = OfflineRetrievalEvaluator(
            [[AnyOf(item) for item in items] for items, _ in queries],
            [documents for _, documents in queries],
            matcher=SpanMatcher(threshold, union=union),
        )
        with no_advice():
            result = evaluator.evaluate(CUTOFFS)
        for k in CUTOFFS:
            founds = [
                Found(
                    Query([list(map(as_text, item)) for item in items], list(map(as_text, ranked))),
                    Rules(threshold, 1, union),
                    k,
                )
                for items, ranked in queries
            ]
            assert {*OF_WORDS} <= {*result.keys}
            for name in result.keys:
                metric = METRICS.get(name) or METRICS["success"]
                expected = [metric(one) for one in founds]
                if name == "hit_rate":
                    expected = [float(one.n == len(one.covered)) for one in founds]
                assert result.tables[k][name].tolist() == pytest.approx(
                    expected, rel=1e-12, nan_ok=True
                ), (name, k)


def test_what_two_chunks_share_counts_once():
    """Of 100 characters, 70 and 60 of which 30 are the same: 1.0 together, 100 of 140 read."""
    lists = [[span(0, 100)]], [[span(0, 70), span(40, 110)]]
    alone = OfflineRetrievalEvaluator(*lists, matcher="spans", threshold=0.9).evaluate([1, 2])
    together = OfflineRetrievalEvaluator(*lists, matcher="spans(union=yes)").evaluate([1, 2])
    assert [result["macro_recall@2"] for result in (alone, together)] == [0.0, 1.0]
    for result in (alone, together):
        assert result["macro_token_recall@1"] == 0.7
        assert result["macro_token_recall@2"] == 1.0
        assert result["macro_token_precision@2"] == 100 / 140
        assert result["redundancy@2"] == 1 - 100 / 130


@pytest.mark.parametrize("matcher", ["spans", "spans(union=yes)"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_place_that_serves_two_passages_counts_once(matcher, swapped):
    """Chunks of 8 and 4 characters bring 8 and 2 of two passages of 10 and 11 that overlap.

    All the same in which order the passages stand. Of 21 characters wanted 20 are held: 10 of
    8 + 4 read are useful, and 10 of the 12 + 21 - 20 that were read or wanted; 2 of 12 come again.
    """
    truths = [span(0, 10), span(0, 11)][:: -1 if swapped else 1]
    lists = [truths], [[span(0, 8), span(6, 10)]]
    result = OfflineRetrievalEvaluator(*lists, matcher=matcher).evaluate([1, 2])
    assert result["macro_token_precision@2"] == pytest.approx(10 / 12)
    assert result["token_iou@2"] == pytest.approx(10 / 13)
    assert result["redundancy@2"] == pytest.approx(2 / 12)
    assert result["macro_token_recall@2"] == 20 / 21
    assert (result["macro_token_precision@1"], result["redundancy@1"]) == (1.0, 0.0)


# --- in the rest of the package --------------------------------------------------------------


ROWS = [
    ("fees?", [TRUTH, span(1000, 1100)], [span(0, 250), span(0, 500, "b.md"), span(240, 400)]),
    ("hours?", [span(10, 50, "b.md", id="7")], [span(0, 30, "c.md"), span(0, 100, "b.md")]),
]
CHUNKS = [span(0, 250), span(240, 400), span(990, 1050), span(1050, 1200), span(0, 500, "b.md"),
          span(0, 100, "b.md"), span(0, 30, "c.md")]  # fmt: skip


@pytest.fixture(autouse=True)
def few_queries(recwarn):
    """Let what is said of so few queries be."""


@pytest.fixture
def path(tmp_path):
    """A file of spans."""
    named = ("question", "actual", "predicted")
    lines = [json.dumps(dict(zip(named, row, strict=True))) for row in ROWS]
    (tmp_path / "run.jsonl").write_text("\n".join(lines), "utf-8")
    return tmp_path / "run.jsonl"


@pytest.fixture
def result():
    """The result of the rows."""
    labels, *lists = zip(*ROWS, strict=True)
    return OfflineRetrievalEvaluator(*lists, matcher="spans", queries=labels).evaluate([1, 2])


def test_a_file_of_spans_is_compared_by_spans(path, result, tmp_path):
    """Without being told: in memory, streamed, in the shell, in processes, saved and read again."""
    dataset = load_dataset(path)
    assert dataset.defaults == {"matcher": "spans"}
    assert dataset.evaluator().evaluate([1, 2]).to_dict() == result.to_dict()
    assert dataset.evaluator(n_jobs=2).evaluate([1, 2]).to_dict() == result.to_dict()
    assert evaluate_file(path, [1, 2], chunk_size=1).to_dict() == result.to_dict()
    done = CliRunner().invoke(main, ["evaluate", str(path), "-k", "1,2", "--format", "json"])
    assert json.loads(done.output)["metrics"]["macro_recall@2"] == result["macro_recall@2"] == 0.5
    for ending in ("jsonl", "csv", "parquet"):
        dataset.save(tmp_path / f"again.{ending}")
        assert load_dataset(tmp_path / f"again.{ending}") == dataset


def test_a_file_whose_chunks_have_texts_is_compared_by_spans(tmp_path):
    """No text finds a ground truth that has none; where both sides have texts, texts count."""
    written = {"page_content": "x" * 40, "metadata": {"source": "a.md", "start_index": 0}}
    for actual, defaults in (([span(0, 40)], {"matcher": "spans"}), ([written], {})):
        row = {"question": "q", "actual": actual, "predicted": [written]}
        (tmp_path / "run.jsonl").write_text(json.dumps(row), "utf-8")
        assert load_dataset(tmp_path / "run.jsonl").defaults == defaults


def test_a_saved_result_moves_its_threshold_and_knows_its_matcher(result, tmp_path):
    """The chunk that holds 150 of 200 counts from 0.75 on."""
    result.to_json(tmp_path / "r.json", texts=True)
    read = EvaluationResult.from_json(tmp_path / "r.json")
    at = read.metrics_at_thresholds("macro_recall@2", [0.75, 0.76])["macro_recall@2"]
    assert at.tolist() == [0.75, 0.5]
    assert matcher_of_signature(read.settings["matcher"]).signature == SpanMatcher().signature
    assert str(read.explain(0, k=2)) == str(result.explain(0, k=2))


def test_explanations_name_the_span(result):
    """Where there is no text, its place stands for it; nothing is said of runs of words."""
    explanation = result.explain(0, k=2)
    assert dict(explanation.documents[0].about) == {"source": "a.md", "start": "0", "end": "250"}
    assert [item.outcome for item in explanation.items] == ["missed", "nothing in common"]
    assert not explanation.by_runs
    assert result.misses(k=2).missed.tolist() == ["a.md start 1000 end 1100"]


def test_a_diagnosis_finds_the_chunk_that_holds_most(result, path):
    """Alone 60 % and together all of an item stand in two chunks: the splitter cut it apart."""
    chunks = path.with_name("chunks.jsonl")
    chunks.write_text("\n".join(map(json.dumps, CHUNKS)), "utf-8")
    diagnosis = result.diagnose(Index(read_chunks(chunks)), k=1)
    rows = [(one.cause, one.chunk, one.similarity, one.together) for one in diagnosis.items]
    assert rows == [
        ("cut_apart", 0, 0.75, 1.0),
        ("cut_apart", 2, 0.5, 1.0),
        ("ranked_too_low", 4, 1.0, 1.0),
    ]
    assert (diagnosis.looked_up.n, diagnosis.looked_up.there) == (5, 5)
    with pytest.raises(InvalidInput) as caught:
        result.diagnose([span(0, 9, "z.md")], k=1)
    assert caught.value.argument == "index"


def test_pieces_are_told_in_a_diagnosis():
    """The first two hold all of it together; the third does alone, and comes too late."""
    lists = [[span(0, 100)]], [[span(0, 60), span(50, 100), span(0, 100)]]
    result = OfflineRetrievalEvaluator(*lists, matcher="spans").evaluate(3)
    assert result.diagnose(k=2).counts["found_in_pieces"] == 1
    assert result.diagnose(k=1).counts["ranked_too_low"] == 1


def test_combined_with_another_matcher():
    """Each part decides by its own threshold; interchangeable spans are one item."""
    truth = [{**span(0, 10), "id": "7"}, AnyOf([span(0, 4, "b.md", id="8"), span(50, 60, id="9")])]
    predicted = [span(0, 10, id="x"), span(0, 9, id="7"), span(50, 60, id="9")]
    both = matches_of(SpanMatcher() & matcher_of_signature("id"), [truth], [predicted])
    assert [row[:2] for row in rows_of(both)] == [(0, 2), (1, 3)]
    with pytest.raises(InvalidInput):
        SpanMatcher(union=True) | CoverageMatcher()


def test_the_same_span_twice_is_one_item_and_one_judgement():
    """In any form; what was looked at is told apart by its place."""
    truth = [span(0, 10), {"page_content": "", "metadata": span(0, 10)}]
    result = OfflineRetrievalEvaluator(
        [truth], [[span(20, 30), span(30, 40)]], matcher="spans", judged=[[span(20, 30)]]
    ).evaluate(2, metrics=["judged", "recall"])
    assert result.tables[2]["ground_truth"].tolist() == [1]
    assert result["judged@2"] == 0.5


def test_ground_truths_differ_where_their_spans_do():
    """Two results are compared where their questions ask for the same places."""
    digests = [
        OfflineRetrievalEvaluator([[truth]], [[TRUTH]], matcher="spans").evaluate(1).rows.digests[0]
        for truth in (TRUTH, {"page_content": "", "metadata": {**TRUTH, "n": 1}}, span(100, 301))
    ]
    assert digests[0] == digests[1] != digests[2]


@copies
def test_a_copy_compares_alike(copied):
    matcher = copied(SpanMatcher(0.5, "source", union=True))
    assert (matcher.signature, matcher.threshold) == ("spans(source_key=source,union=yes)", 0.5)
    assert matcher.similarity(TRUTH, span(0, 250)) == 0.75


def test_many_overlapping_spans_take_no_square():
    """40,000 spans on each side of one query, of which each meets some ten."""
    places = range(0, 400_000, 10)
    actual, predicted = ([span(at, at + 50) for at in places] for _ in range(2))
    assert len(matches_of(SpanMatcher(), [actual], [predicted])) == 9 * 40_000 - 20
