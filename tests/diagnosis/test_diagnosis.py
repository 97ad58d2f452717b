"""Diagnosis: the class of every item against a slow reference, and by hand what goes with it.

The reference is the definition on sets of positions, with nothing of ``krag_eval``; pieces are
those of ``reference_pieces``.
"""

import math
import pickle
import random
import warnings
from dataclasses import dataclass, replace
from itertools import repeat

import pandas as pd
import pytest
from langchain_core.documents import Document
from reference import no_advice
from reference_pieces import Held, Query, Rules, positions_shared, random_case
from refusals import blamed
from results_made import MISSING, changed, evaluated, read_back, write_lines
from trials import trials, tries_fewer

from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    Diagnosis,
    EvaluationResult,
    IdMatcher,
    Index,
    KragEvalWarning,
    Matcher,
    MetadataMatcher,
    NumbersMatcher,
    OfflineRetrievalEvaluator,
    audit,
    evaluate_file,
    load_dataset,
)
from krag_eval.core import page_of, speaking
from krag_eval.datasets import Dataset
from krag_eval.diagnosis.diagnosis import CLASSES, LookedUp
from krag_eval.errors import InvalidInput, InvalidType

# --- the slow reference ----------------------------------------------------------------------

# Some of what is retrieved here is in no index, and queries are few, which is said each time.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*different documents that were retrieved"),
    pytest.mark.filterwarnings("ignore:Without a document in the deeper list"),
    pytest.mark.filterwarnings("ignore:.*too many to mean anything"),
]

FURTHEST = ("found", "found_in_pieces", "ranked_too_low", "not_retrieved", "not_in_top_k",
            "cut_apart", "contradicted", "not_in_index", "not_seen")  # fmt: skip


@dataclass
class Asked:
    """What a diagnosis is asked: the cutoff, the chunks, a longer list, how much of it."""

    k: int | None
    index: list | None
    deeper: list | None
    depth: int | None


def slow_class(texts, documents, asked, rules, *, is_deep):
    """Return the class of an item and where it stands, by the definition."""
    spoken = [text for text in texts if text]
    if not spoken:
        return "no_words", None
    classes = [slow_class_of(text, documents, asked, rules, is_deep=is_deep) for text in spoken]
    return min(classes, key=lambda one: (FURTHEST.index(one[0]), one[1] or 0))


def slow_class_of(text, documents, asked, rules, *, is_deep):
    """Return the same for one of its texts."""

    def is_enough(*chunks):
        agreeing = [chunk for chunk in chunks if not contradicts(text, chunk, rules)]
        positions = Held(text, agreeing, rules).together[-1]
        return len(positions) > 0 and len(positions) / len(text) >= rules.threshold

    seen = documents[: asked.k]
    ranks = range(1, len(seen) + 1)
    alone = next((rank for rank in ranks if is_enough(seen[rank - 1])), None)
    together = next((rank for rank in ranks if is_enough(*seen[:rank])), None)
    if together:
        return ("found", alone) if alone else ("found_in_pieces", together)
    if asked.index is not None and not is_enough(*asked.index):
        another = any(contradicts(text, chunk, rules) for chunk in asked.index)
        return "contradicted" if another else "not_in_index", None
    if asked.index is not None and not any(is_enough(chunk) for chunk in asked.index):
        return "cut_apart", None
    stands = next((rank for rank, one in beyond(documents, asked) if is_enough(one)), None)
    if stands:
        return "ranked_too_low", stands
    missed = "not_retrieved" if is_deep else "not_in_top_k"
    return ("not_seen" if asked.index is None else missed), None


def contradicts(text, chunk, rules):
    """Tell whether a chunk has another year than a text of which it holds half, or a piece."""
    held = positions_shared(text, chunk, min(rules.min_run, len(text)))
    is_looked_at = held and (rules.union or 2 * len(held) >= len(text))
    years = [{one for one in tokens if one.isdecimal()} for tokens in (text, chunk)]
    return bool(is_looked_at and all(years) and years[0] != years[1])


def beyond(documents, asked):
    """Return rank and document of what stands beyond the cutoff."""
    first = len(documents) if asked.k is None else asked.k
    if asked.deeper is None:
        return list(enumerate(documents[: asked.depth], 1))[first:]
    return [(max(rank, first + 1), one) for rank, one in enumerate(asked.deeper[: asked.depth], 1)]


def slow(queries, asked_of, rules):
    """Return class and rank of every item that counts, query after query."""
    is_deep = any(
        asked.deeper is not None
        or (asked.k is not None and len(query.documents[: asked.depth]) > asked.k)
        for query, asked in zip(queries, asked_of, strict=True)
    )
    return [
        slow_class(item.texts, query.documents, asked, rules, is_deep=is_deep)
        for query, asked in zip(queries, asked_of, strict=True)
        for item in query.ground_truth()
    ]


# --- random cases ----------------------------------------------------------------------------


def written(text):
    return " ".join(text)


def item_of(texts, grade):
    """Return an item as users write it, with its grade."""
    several = list(map(written, texts))
    if grade != 1:
        several = [{"page_content": one, "metadata": {"grade": grade}} for one in several]
    return several[0] if len(several) == 1 else AnyOf(several)


def agreed(queries, matcher, rules, *asked):
    """Diagnose queries and compare each item with the reference."""
    k, index, lists, depth = asked
    how = {"k": (1, 2, 3, None), "grade_key": "grade", "no_ground_truth": "zero"}
    result = evaluated(
        [list(map(item_of, one.items, one.grades or repeat(1))) for one in queries],
        [list(map(written, query.documents)) for query in queries], matcher, **how,
    )  # fmt: skip
    diagnosis = result.diagnose(
        index and map(written, index), lists and [list(map(written, one)) for one in lists],
        "all" if k is None else k, depth, foreign_index="allow",
    )  # fmt: skip
    asked = [Asked(k, index, lists and lists[at], depth) for at in range(len(queries))]
    assert [(item.cause, item.rank) for item in diagnosis.items] == slow(queries, asked, rules)
    return result, diagnosis


def random_index(source, queries):
    """Return chunks: most of what was retrieved, some golden texts whole, and more."""
    retrieved = [one for query in queries for one in query.documents]
    golden = [text for query in queries for item in query.items for text in item if text]
    chunks = [one for one in retrieved if source.random() < 0.8]
    chunks += [one for one in golden if source.random() < 0.3]
    for text in golden:
        middle = source.randint(0, len(text))
        chunks += [text[:middle], text[max(0, middle - 2) :]] if source.random() < 0.4 else []
    chunks.append(["z", "y"])
    source.shuffle(chunks)
    return chunks


def compare(seed, *, union):
    """Diagnose a random case and compare each item with the reference."""
    source = random.Random(seed)
    case = random_case(seed)
    rules, queries = Rules(case.rules.threshold, case.rules.min_run), list(case.queries)
    index = random_index(source, queries) if source.random() < 0.7 else None
    k = source.choice([1, 2, 3, None])
    pool = [one for query in queries for one in query.documents] + (index or [])
    lists = None
    if source.random() < 0.5:
        lists = [source.sample(pool, source.randint(0, len(pool))) for _ in queries]
        lists = lists if any(map(any, lists)) else None  # which is refused
    matcher = CoverageMatcher(
        rules.threshold, rules.min_run, "whitespace", numbers="ignore", polarity=False, union=union
    )
    depth = source.choice([None, None, 4, 6])
    return *agreed(queries, matcher, rules, k, index, lists, depth), k


@tries_fewer
@pytest.mark.parametrize("union", [False, True])
def test_every_item_has_the_class_of_the_definition(union):
    """With and without an index, deeper lists, a depth; alternatives, repeats and grades."""
    seen = set()
    for seed in range(trials(300)):
        result, diagnosis, k = compare(seed, union=union)
        shares, found = diagnosis.shares, result.evidence.relevance
        if not math.isnan(shares["found"]):
            assert sum(shares.values()) == pytest.approx(1.0)
        # What counts as found is what recall counts, where every item has words.
        counts = diagnosis.counts
        covered = counts["found"] + (counts["found_in_pieces"] if union else 0)
        assert covered == found.covered_within(k).sum()
        assert len(diagnosis.items) == len(found.item_query)
        seen |= {item.cause for item in diagnosis.items}
    assert seen == {*CLASSES} - {"contradicted"}  # else the comparison would show little


def version(passage, year):
    """Return a passage of words that no other has, with a year far from its ends."""
    words = [f"{letter}{passage}" for letter in "abcdefghijklmn"]
    return [*words[:7], str(year), *words[7:]]


def random_versions(source):
    """Return queries for passages of one year, and chunks: passages of some years, whole or cut."""
    passages = range(source.randint(1, 3))
    pool = [["x", "y", "z"]]
    for passage in passages:
        for year in source.choices([2022, 2023, 2024], k=source.randint(0, 3)):
            text = version(passage, year)
            # The year stands between four words at least, or in the other part.
            cut = source.choice([0, 3, 11, 12])
            pool += source.sample([text[:cut], text[cut:]], source.randint(1, 2)) if cut else [text]
    queries = []
    for passage in passages:
        years = source.choice([[2024], [2024, 2023]])
        documents = source.sample(pool, source.randint(0, min(3, len(pool))))
        queries.append(Query([[version(passage, year) for year in years]], documents))
    return queries, source.sample(pool, source.randint(1, len(pool)))


@tries_fewer
@pytest.mark.parametrize("union", [False, True])
def test_every_passage_of_another_year_has_the_class_of_the_definition(union):
    """Whole versions and pieces of them, alternatives, with deeper lists and without."""
    seen = set()
    for seed in range(trials(300)):
        source = random.Random(seed)
        queries, index = random_versions(source)
        rules = Rules(source.choice([0.5, 0.8]), source.choice([3, 4]), union)
        matcher = CoverageMatcher(rules.threshold, rules.min_run, "whitespace", union=union)
        lists = None
        if source.random() < 0.3:
            lists = [source.sample(index, source.randint(1, len(index))) for _ in queries]
        _, diagnosis = agreed(queries, matcher, rules, source.choice([1, 2]), index, lists, None)
        assert sum(diagnosis.shares.values()) == pytest.approx(1.0)
        seen |= {item.cause for item in diagnosis.items}
    assert seen == {*CLASSES} - {"not_seen", "no_words"}


# --- one query by hand -----------------------------------------------------------------------

CHUNKS = [
    "the fee for a lost card is five euros",  # 0
    "we open at nine and close at six on weekdays",  # 1
    "books may be kept for four weeks and",  # 2: cut apart, the rest is in the next
    "films for one week unless somebody waits for them",  # 3
    "pets are not allowed in any of the rooms",  # 4
    "the fee for a lost card is five euros today",  # 5: repeats the first
    "tea and coffee are served in the garden",  # 6
]
FEE, OPEN = "the fee for a lost card is five euros", "we open at nine and close at six"
LOAN = "books may be kept for four weeks and films for one week unless somebody waits"
PETS = "pets are not allowed in any of the rooms"
PARSED = "tea and cof- fee are ser ved in the gar den"
NOWHERE = "parking is free for members of the society on Sundays"


def covered(actual, predicted, **options):
    return evaluated(actual, predicted, "coverage", **options)


def causes(diagnosis):
    return [item.cause for item in diagnosis.items]


@pytest.fixture
def one() -> EvaluationResult:
    """Six passages of one question, of which the first two documents hold one."""
    items = [FEE, OPEN, LOAN, PETS, PARSED, NOWHERE]
    return covered([items], [[CHUNKS[0], CHUNKS[5], CHUNKS[1]]], queries=["When do you open?"])


def test_each_class_by_hand(one):
    """K = 2: the fee is found, opening hours stand at rank 3, pets are in the index alone."""
    diagnosis = one.diagnose(CHUNKS, k=2)
    assert causes(diagnosis) == [
        *("found", "ranked_too_low", "cut_apart", "not_retrieved", "not_in_index", "not_in_index")
    ]
    assert [item.rank for item in diagnosis.items] == [1, 3, None, None, None, None]
    # LOAN: 8 words in chunk 2, 7 in chunk 3, of 15.
    assert diagnosis.items[2].similarity == 8 / 15
    assert diagnosis.items[2].together == 1.0
    assert [item.chunk for item in diagnosis.items] == [None, 1, 2, 4, None, None]
    assert diagnosis.index_ceiling == 3 / 6
    assert diagnosis.counts == {
        "found": 1, "found_in_pieces": 0, "ranked_too_low": 1, "not_retrieved": 1,
        "cut_apart": 1, "contradicted": 0, "not_in_index": 2,
    }  # fmt: skip


def test_what_may_tell_why(one):
    """Words shared with the question, near-repeats above, letters that are there."""
    _, opened, loan, pets, parsed, nowhere = one.diagnose(CHUNKS, k=2).items
    # Of when, do, you, open the chunk has the last.
    assert opened.query_overlap == 1 / 4
    assert pets.query_overlap == loan.query_overlap == 0.0
    assert parsed.query_overlap is None
    # Rank 2 is rank 1 with one word more: 9 of 10 words.
    assert opened.repeats_above == pets.repeats_above == 1
    assert (parsed.letters, nowhere.letters) == (1.0, 0.0)
    assert opened.letters is None


def test_pieces_within_the_cutoff():
    """Two documents hold the passage together: found in pieces, at the rank that completes it."""
    result = evaluated([[LOAN]], [[CHUNKS[2], CHUNKS[1], CHUNKS[3]]], "coverage")
    assert causes(result.diagnose(CHUNKS, k=2)) == ["cut_apart"]
    (item,) = result.diagnose(CHUNKS, k=5).items
    assert (item.cause, item.rank, item.together) == ("found_in_pieces", 3, 1.0)


def test_without_index_or_anything_deeper(one):
    """What cannot be told apart has one class."""
    assert causes(one.diagnose(k=5)) == ["found", "found", *["not_seen"] * 4]
    assert causes(one.diagnose(k=2)) == ["found", "ranked_too_low", *["not_seen"] * 4]
    told = causes(one.diagnose(CHUNKS, k=5))
    assert told == ["found", "found", "cut_apart", "not_in_top_k", "not_in_index", "not_in_index"]
    assert one.diagnose(k=5).index_ceiling is None


DEEP = [CHUNKS[5], CHUNKS[6], CHUNKS[0], CHUNKS[4]]


class Retriever:
    """A retriever as LangChain's, which are no functions."""

    def invoke(self, question):
        assert question == "When do you open?"
        return [Document(text) for text in DEEP]


@pytest.mark.parametrize(
    "deeper",
    [[DEEP], {"When do you open?": DEEP}, lambda question: iter(DEEP), Retriever()],
    ids=type,
)
def test_deeper_lists_in_every_form(one, deeper):
    """They take the place of the predicted documents beyond the cutoff."""
    diagnosis = one.diagnose(CHUNKS, deeper, 2)
    assert causes(diagnosis)[1] == "not_retrieved"
    assert (causes(diagnosis)[3], diagnosis.items[3].rank) == ("ranked_too_low", 4)
    assert causes(one.diagnose(CHUNKS, deeper, 2, 3))[3] == "not_retrieved"
    assert diagnosis.depth == 4


def test_a_better_rank_in_the_deeper_list_is_the_first_beyond_the_cutoff():
    """The other run has it first; the list that was evaluated lacks it."""
    result = covered([[PETS]], [[CHUNKS[0], CHUNKS[1]]])
    (item,) = result.diagnose(CHUNKS, [[CHUNKS[4]]], 2).items
    assert (item.cause, item.rank) == ("ranked_too_low", 3)


def test_only_where_something_is_missed_is_anything_asked():
    """A function may be a retriever, and every question costs."""
    asked = []

    def search(question):
        asked.append(question)
        return [CHUNKS[4]]

    result = covered([[FEE], [PETS]], [[CHUNKS[0]], [CHUNKS[1]]], queries=["fee?", "pets?"])
    assert causes(result.diagnose(None, search, 1)) == ["found", "ranked_too_low"]
    assert asked == ["pets?"]


def test_interchangeable_documents_are_as_good_as_the_best_of_them():
    """One is nowhere, one cut apart, one in the index: the item is not retrieved."""
    result = covered([[AnyOf([NOWHERE, LOAN, PETS])], [AnyOf([NOWHERE, LOAN])]], [["x"], ["x"]])
    diagnosis = result.diagnose(CHUNKS, k=1, foreign_index="allow")
    assert causes(diagnosis) == ["not_in_top_k", "cut_apart"]
    assert [item.chunk for item in diagnosis.items] == [4, 2]


# --- another version -------------------------------------------------------------------------

NOW = "in 2024 the fee for a card rose to five euros a year for all members"  # 15 words
BEFORE = NOW.replace("2024", "2023") + " of the society"
TODAY = NOW + " of the society"


def said(item):
    return item.differs_in, item.passage_says, item.chunk_says


def diagnosed(passages, retrieved, index, matcher="coverage", **options):
    result = evaluated([passages], [retrieved], matcher)
    return result.diagnose(index, foreign_index="allow", **options)


@pytest.mark.parametrize(
    ("retrieved", "index", "cause"),
    [
        (CHUNKS[:1], [CHUNKS[0], BEFORE], "contradicted"),
        ([BEFORE], [CHUNKS[0], BEFORE], "contradicted"),
        ([TODAY], [BEFORE, TODAY], "found"),
        ([BEFORE], [BEFORE, TODAY], "not_in_top_k"),
        ([BEFORE], CHUNKS, "not_in_index"),
    ],
)
@pytest.mark.parametrize(
    "matcher", ["coverage", "coverage(union=yes)", "coverage(direction=either)"]
)
def test_last_year_s_version_is_not_this_year_s(retrieved, index, cause, matcher):
    """An item is contradicted where the index has another version and not the wanted one."""
    (item,) = diagnosed([NOW], retrieved, index, matcher).items
    assert item.cause == cause
    if cause == "contradicted":
        assert (item.chunk, item.similarity, *said(item)) == (1, 0.0, "number", "2024", "2023")
    else:
        assert said(item) == (None, None, None)


def test_a_longer_list_may_have_the_right_version():
    """The deeper list has this year's version at rank 2, or at no rank."""
    index = [BEFORE, TODAY, CHUNKS[0]]
    for deeper, cause in (([BEFORE, TODAY], "ranked_too_low"), ([BEFORE], "not_retrieved")):
        assert causes(diagnosed([NOW], [BEFORE], index, deeper=[deeper])) == [cause]
    assert causes(diagnosed([NOW], [BEFORE], [BEFORE], deeper=[[BEFORE]])) == ["contradicted"]
    # Of what the lists alone say, another version is no more than anything else.
    assert causes(diagnosed([NOW], [BEFORE], None)) == ["not_seen"]


def test_the_chunk_that_contradicts_is_the_one_that_holds_most():
    """The first holds 9 of 15 words, the second 14."""
    index = [" ".join(BEFORE.split()[:10]), CHUNKS[0], BEFORE.replace("2023", "2022")]
    (item,) = diagnosed([NOW], CHUNKS[:1], index).items
    assert (item.cause, item.chunk, *said(item)) == ("contradicted", 2, "number", "2024", "2022")


def test_pieces_of_another_version_do_not_complete_a_passage():
    """Of 23 words, 15 and 8; the year is in the first, a number of cents in the second."""
    first = "since the start of spring 2024 the fee for a lost card of the house"
    second = "is five euros and 30 cents a day"
    passage = f"{first} {second}"
    matchers = [CoverageMatcher(0.7, 3, union=union) for union in (False, True)]
    for matcher in matchers:
        assert causes(diagnosed([passage], ["x"], [first, second], matcher)) == ["cut_apart"]
        index = [CHUNKS[1], first.replace("2024", "2023"), second]
        (item,) = diagnosed([passage], ["x"], index, matcher).items
        assert (item.cause, item.chunk, item.together) == ("contradicted", 1, 8 / 23)
    # It holds less than half: only where pieces count it matters what it says. 22 of 23, or 15.
    index = [first, second.replace("30", "20")]
    told = [causes(diagnosed([passage], ["x"], index, matcher)) for matcher in matchers]
    assert told == [["cut_apart"], ["contradicted"]]


def test_the_best_alternative_decides_about_versions():
    """Cut apart is closer to being found than contradicted, which is closer than nowhere."""
    index = [*CHUNKS, BEFORE]
    items = [AnyOf([NOWHERE, NOW]), AnyOf([NOW, LOAN]), AnyOf([NOW, PETS])]
    diagnosis = diagnosed(items, ["x"], index)
    assert causes(diagnosis) == ["contradicted", "cut_apart", "not_in_top_k"]
    assert said(diagnosis.items[0]) == ("number", "2024", "2023")
    assert diagnosis.index_ceiling == 1 / 3


def test_without_the_guard_there_is_no_such_class():
    """Numbers are words then: last year's version holds 14 of 15."""
    diagnosis = diagnosed([NOW], ["x"], [BEFORE], "coverage(numbers=ignore,polarity=no)")
    assert causes(diagnosis) == ["not_in_top_k"]
    assert "contradicted" not in diagnosis.counts
    assert "contradicted" not in diagnosed([NOW], ["x"], [BEFORE], "contains").counts


@pytest.mark.parametrize(
    ("passage", "chunk", "other"),
    [
        ("revenue of the town grew to {} euros", "1,200,000", "1,300,000"),
        ("시는 올해 청년의 월세와 교육비로 {}원을 지원한다", "70,000,000", "80,000,000"),
    ],
)
def test_the_index_is_read_with_numbers_in_one_spelling(passage, chunk, other):
    """A sum in millions is the same in digits; in Korean, one with 만."""
    wanted = passage.format("1.2 million" if passage.isascii() else "7000만")
    assert causes(diagnosed([wanted], ["x"], [passage.format(chunk)])) == ["not_in_top_k"]
    (item,) = diagnosed([wanted], ["x"], [passage.format(other)]).items
    assert (item.cause, item.differs_in) == ("contradicted", "number")


def test_an_index_that_was_read_is_read_in_the_other_spelling_too():
    """Several matchers share an index, and each finds what it would find alone."""
    index = Index([CHUNKS[0], "revenue of the town grew to 1,200,000 euros"])
    passage = "revenue of the town grew to 1.2 million euros"
    for matcher, cause in (
        ("coverage", "not_in_top_k"),
        ("coverage(numbers=ignore,polarity=no)", "not_in_index"),
        ("coverage(polarity=no)", "not_in_top_k"),
    ):
        assert causes(diagnosed([passage], ["x"], index, matcher)) == [cause]


@pytest.mark.parametrize(
    ("passage", "chunk", "differs_in", "words", "korean"),
    [
        (NOW, BEFORE, "number", "the passage has 2024, the chunk 2023 there",
         "정답은 2024, 청크는 2023"),
        ("members may lend the films of the house to anyone",
         "members may not lend the films of the house to anyone", "negation",
         "one of them negates it", "한쪽만 부정"),
        ("the garden is open to members before nine in the evening",
         "the garden is open to members after nine in the evening", "text",
         "another text, which has “after” for “before”", "“before” 자리에 “after”"),
        ("the way from the house to the garden is 5 km long for all",
         "the way from the house to the garden is 5 m long for all", "number",
         "the passage has 5 km, the chunk 5 m there", "정답은 5 km, 청크는 5 m"),
    ],
)  # fmt: skip
def test_what_a_version_says_otherwise_is_told_and_kept(
    tmp_path, passage, chunk, differs_in, words, korean
):
    """The summary has an example, in both languages, as has the page of a report."""
    result = covered([[passage]], [[CHUNKS[0]]])
    diagnosis = result.diagnose([CHUNKS[0], chunk])
    assert diagnosis.table["differs_in"].to_list() == [differs_in]
    again = read_back(diagnosis, tmp_path)
    assert again == diagnosis
    for language, part in (("en", words), ("ko", korean)):
        assert part in again.summary(language)
    result.report(tmp_path / "page.html", diagnosis=again, intervals=False)
    assert words in (tmp_path / "page.html").read_text("utf-8")
    assert result.by("diagnosis", diagnosis=again).names == ["contradicted"]


def test_a_diagnosis_saved_before_there_was_a_guard_is_read(tmp_path):
    """It has neither the class nor what is said otherwise."""
    covered([[NOWHERE]], [[CHUNKS[0]]]).diagnose(CHUNKS).to_json(tmp_path / "d.json")
    changed(tmp_path / "d.json", "is_guarded", MISSING, sealed=False)
    for name in ("differs_in", "passage_says", "chunk_says"):
        changed(tmp_path / "d.json", "items", name, MISSING, sealed=False)
    before = Diagnosis.from_json(tmp_path / "d.json")
    assert "contradicted" not in before.counts
    assert before.items[0].differs_in is None


# --- what counts -----------------------------------------------------------------------------


def test_items_that_do_not_count_are_no_items():
    """Repeats and grade 0 have no row; what has no words has one, and no share."""
    graded = {"page_content": NOWHERE, "metadata": {"grade": 0}}
    passages = [FEE, FEE, graded, "!!!"]
    result = covered(
        [passages, []], [[CHUNKS[0]], ["x"]], grade_key="grade", no_ground_truth="skip"
    )
    diagnosis = result.diagnose(CHUNKS, k=1)
    assert [(item.item, item.cause) for item in diagnosis.items] == [(1, "found"), (4, "no_words")]
    assert diagnosis.shares["found"] == 1.0
    assert "no_words" not in diagnosis.shares


def test_the_right_source_and_the_wrong_chunk():
    """The source of a passage is its own, or that of the chunk that holds it."""

    def chunk(text, source):
        return Document(text, metadata={"source": source})

    index = [chunk(FEE, "a.pdf"), chunk(OPEN, "a.pdf"), chunk(PETS, "b.pdf")]
    truth = {"page_content": NOWHERE, "metadata": {"source": "a.pdf"}}
    result = covered([[OPEN, PETS, truth, FEE, LOAN]], [[FEE]], k=[1])
    told = [item.right_source for item in result.diagnose(index, k=1).items]
    # LOAN has no source, and no chunk holds it.
    assert told == [True, False, True, None, None]
    assert result.diagnose(index, k=1, source_key="file").items[0].right_source is None


# --- other matchers --------------------------------------------------------------------------


def page(number):
    return Document(f"page {number}", metadata={"page": number})


EUROS = "the fee for a lost card is 5 euros"


@pytest.mark.parametrize(
    ("actual", "predicted", "matcher", "index", "expected"),
    [
        # Equal texts, ids: in the index or not, within the cutoff or not; no pieces.
        ([[FEE, PETS, LOAN, "  "]], [[CHUNKS[1], CHUNKS[0]]], "text", CHUNKS,
         ["ranked_too_low", "not_retrieved", "not_in_index", "no_words"]),
        ([["1", "2", "9"]], [["3", "1"]], IdMatcher(), ["1", "2", "3"],
         ["ranked_too_low", "not_retrieved", "not_in_index"]),
        # Two passages of one page are one item to the matcher; a repeat across queries is not.
        ([[page(1)], [page(1)], [page(7)]], [[page(2)]] * 3, MetadataMatcher("page"),
         [page(1), page(2)], ["not_in_top_k", "not_in_top_k", "not_in_index"]),
        ([[PETS, NOWHERE]], [[CHUNKS[0]]], "contains", CHUNKS, ["not_in_top_k", "not_in_index"]),
        *(pytest.param([[PETS, NOWHERE]], [[CHUNKS[0]]], matcher, CHUNKS,
                       ["not_in_top_k", "not_in_index"], marks=pytest.mark.needs("matchers"))
          for matcher in ("rouge2", "fuzzy")),
        # The words are in the index with another number, of which documents decide alone.
        *(([[EUROS], [LOAN]], [["x"]] * 2, matcher, [EUROS.replace("5", "6"), *CHUNKS],
           ["not_in_index"] * 2)
          for matcher in (CoverageMatcher() & NumbersMatcher(), CoverageMatcher(numbers=True))),
        # Of the long passage every piece is a match.
        ([[LOAN]], [["nothing of the kind"]], CoverageMatcher(direction="either"), CHUNKS[2:4],
         ["not_in_top_k"]),
    ],
)  # fmt: skip
def test_classes_by_other_matchers(actual, predicted, matcher, index, expected):
    """Whatever they look at; only coverage tells what is cut apart, or in pieces."""
    diagnosis = evaluated(actual, predicted, matcher).diagnose(index, k=1, foreign_index="allow")
    assert causes(diagnosis) == expected
    assert not {"cut_apart", "found_in_pieces"} & {*diagnosis.shares}
    if isinstance(matcher, IdMatcher):  # nothing is said of words
        assert {(one.query_overlap, one.letters) for one in diagnosis.items} == {(None, None)}


def random_words(source, n_queries=4):
    """Return queries of single words: equal texts are what coverage of one word is."""

    def words(least, most):
        return [[source.choice("abcdefgh")] for _ in range(source.randint(least, most))]

    return [
        Query([words(1, 3) for _ in range(source.randint(0, 3))], words(0, 4))
        for _ in range(n_queries)
    ]


@tries_fewer
@pytest.mark.parametrize(
    "matcher",
    [
        "text",
        "contains",
        "id",
        pytest.param("fuzzy", marks=pytest.mark.needs("matchers")),
        IdMatcher() & IdMatcher(),
    ],
    ids=str,
)
def test_other_matchers_have_the_class_of_the_definition(matcher):
    """With alternatives, an index or none, deeper lists or none."""
    for seed in range(trials(100)):
        source = random.Random(seed)
        queries, k = random_words(source), source.choice([1, 2])
        index = [[one] for one in source.sample("abcdefghxyz", 6)]
        index = source.choice([None, index])
        lists = [[[one] for one in source.sample("abcdefgh", 5)] for _ in queries]
        lists, depth = source.choice([None, lists]), source.choice([None, 4])
        agreed(queries, matcher, Rules(1.0, 1), k, index, lists, depth)


@pytest.mark.needs("matchers")
def test_pairs_are_scored_up_to_a_limit():
    """One passage and seven chunks are seven pairs; keys and runs of words need none."""
    result = evaluated([[NOWHERE]], [[CHUNKS[0]]], "fuzzy")
    with blamed("index") as refused:
        result.diagnose(CHUNKS, k=1, most_pairs=6)
    assert "7 pairs" in str(refused.value)
    assert "most_pairs" in str(refused.value.fix)
    assert causes(result.diagnose(CHUNKS, k=1, most_pairs=7)) == ["not_in_index"]
    for matcher in ("text", "coverage"):
        evaluated([[NOWHERE]], [[CHUNKS[0]]], matcher).diagnose(CHUNKS, k=1, most_pairs=1)


class SameLength(Matcher):
    """A matcher of a user's own, which no signature can make again."""

    threshold = 1.0

    def similarity(self, actual, predicted):
        return float(len(actual.page_content) == len(predicted.page_content))


def test_a_matcher_of_your_own_comes_back_with_the_result():
    """In memory it is known; what was pickled must be told."""
    result = evaluated([["abc", "abcd"]], [["x"]], SameLength())
    assert causes(result.diagnose(["xyz", "x"], k=1)) == ["not_in_top_k", "not_in_index"]
    copied = pickle.loads(pickle.dumps(result))
    with blamed("matcher"):
        copied.diagnose(["xyz", "x"], k=1)
    again = copied.diagnose(["xyz", "x"], k=1, matcher=SameLength())
    assert causes(again) == ["not_in_top_k", "not_in_index"]
    with pytest.raises(InvalidInput) as refused:
        result.diagnose(["xyz", "x"], k=1, matcher="text")
    assert "SameLength" in str(refused.value)


# --- the index -------------------------------------------------------------------------------


def test_an_index_is_read_once():
    """Several diagnoses share it; the tokenizer sees every chunk once."""
    seen = []

    def tokens(text):
        seen.append(text)
        return text.split()

    index = Index(iter([*CHUNKS, CHUNKS[0]]))
    for passage in (NOWHERE, PARSED):
        result = evaluated([[passage]], [["x"]], CoverageMatcher(tokenizer=tokens))
        result.diagnose(index, k=1, foreign_index="allow")
    assert len(index) == 8
    assert [seen.count(chunk) for chunk in CHUNKS] == [1] * 7


def test_an_index_is_read_from_a_file_or_a_data_frame(tmp_path):
    """A chunk per line or row, its fields named alike; an empty cell holds nothing."""
    frame = pd.DataFrame({"id": ["7", "8"], "text": ["At nine.", "At ten."], "page": [3, None]})
    path = tmp_path / "chunks.jsonl"
    frame.to_json(path, orient="records", lines=True)
    expected = [{"page_content": "At nine.", "id": "7", "metadata": {"page": 3}},
                {"page_content": "At ten.", "id": "8"}]  # fmt: skip
    result = evaluated([["At ten."]], [["At nine."]], "text")
    with path.open("rb") as opened:
        assert Index(opened).documents == expected
    for source in (frame, path, str(path)):
        assert Index(source).documents == expected
        assert [one.cause for one in result.diagnose(source, k=1).items] == ["not_in_top_k"]


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ({"title": ["a"]}, None),
        ({"text": ["a"], "contents": ["a"]}, None),
        ({"text": ["a", None]}, "[1]"),
        ({"text": [7]}, "[0]"),
    ],
)
def test_a_data_frame_without_one_text_in_each_row_is_refused(frame, place):
    """The names of its columns are no chunks."""
    with pytest.raises((InvalidInput, InvalidType)) as error:
        Index(pd.DataFrame(frame))
    assert error.value.argument == "index"
    assert place is None or place in f"{error.value.within}"


# --- saved results ---------------------------------------------------------------------------


def test_a_saved_result_is_diagnosed_with_its_texts(one, tmp_path):
    """The same diagnosis; without texts, that of the predicted lists alone."""
    saved = read_back(one, tmp_path, texts=True)
    assert saved.diagnose(CHUNKS, k=2) == one.diagnose(CHUNKS, k=2)
    bare = read_back(one, tmp_path)
    assert causes(bare.diagnose(k=2)) == causes(one.diagnose(k=2))
    with pytest.raises(InvalidInput) as refused:
        bare.diagnose(CHUNKS, k=2)
    assert "texts=True" in str(refused.value)


# --- the data set again ------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """A file of queries, of which every item meets another fate."""
    rows = [
        {"question": "Fee?", "actual": [FEE], "predicted": [CHUNKS[0], CHUNKS[1]]},
        {"question": "Loan?", "actual": [LOAN, NOWHERE], "predicted": [CHUNKS[1], CHUNKS[4]]},
        {"question": "Pets?", "actual": [PETS], "predicted": [CHUNKS[0], PETS]},
    ]
    return write_lines(tmp_path / "run.jsonl", rows)


ASKED = {"index": [*CHUNKS, PETS], "k": 1}


@pytest.mark.parametrize("rows", [None, "rows.csv", "rows.parquet"])
def test_a_streamed_result_reads_its_data_set_again(run, tmp_path, rows):
    """With rows or without; from a path or a data set; saved or not."""
    here = load_dataset(run).evaluator(matcher="coverage").evaluate([1, 2])
    expected = here.diagnose(**ASKED)
    assert causes(expected) == ["found", "cut_apart", "not_in_index", "ranked_too_low"]
    per_query = None if rows is None else tmp_path / rows
    streamed = evaluate_file(run, [1, 2], per_query=per_query, matcher="coverage", chunk_size=2)
    with pytest.raises(InvalidInput) as refused:
        streamed.diagnose(**ASKED)
    assert "dataset=" in str(refused.value.fix)
    assert streamed.diagnose(**ASKED, dataset=run) == expected
    assert streamed.diagnose(**ASKED, dataset=load_dataset(run)) == expected
    assert read_back(streamed, tmp_path).diagnose(**ASKED, dataset=str(run)) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"matcher": "coverage(union=yes)", "threshold": 0.5, "matching_criteria": "partial"},
        {"matcher": "text", "conventions": Conventions.krag()},
        {"matcher": "contains", "no_ground_truth": "skip"},
    ],
)
def test_a_result_saved_without_texts_reads_them_again(run, tmp_path, options):
    """It is matched as it was: matcher, threshold, conventions, queries without ground truth."""
    dataset = load_dataset(run)
    if "no_ground_truth" in options:
        dataset = replace(dataset, actual=[*dataset.actual[:2], []])
    with no_advice():
        result = dataset.evaluator(**options).evaluate([1, "20w"])
        again = read_back(result, tmp_path).diagnose(**ASKED, dataset=dataset)
        assert again == result.diagnose(**ASKED)


def test_ids_are_read_again(tmp_path):
    """A file of a result keeps texts, and nothing is guessed from them."""
    dataset = Dataset(["one?"], [["1"]], [["3", "1"]], defaults={"matcher": "id"})
    saved = read_back(dataset.evaluator().evaluate([1, 2]), tmp_path, texts=True)
    assert causes(saved.diagnose(["1", "3"], k=1, dataset=dataset)) == ["ranked_too_low"]
    with blamed("matcher"):
        saved.diagnose(["1", "3"], k=1)


def test_queries_that_were_not_labelled_may_have_questions(run):
    """A position is no label that could differ."""
    data = load_dataset(run)
    plain = OfflineRetrievalEvaluator(data.actual, data.predicted, matcher="coverage").evaluate(1)
    assert causes(plain.diagnose(**ASKED, dataset=data)) == causes(plain.diagnose(**ASKED))


def other(part, position, value):
    """Return what makes another data set of one."""

    def changed(data):
        values = list(getattr(data, part))
        values[position] = value
        return replace(data, **{part: values})

    return changed


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(
    ("change", "needs_rows"),
    [
        (lambda data: replace(data, predicted=None), False),
        (lambda data: Dataset(data.queries[:2], data.actual[:2], data.predicted[:2]), False),
        (other("actual", 0, [PETS]), False),
        (other("predicted", 2, [PETS]), False),
        (other("queries", 1, "Loans?"), True),
        (other("actual", 1, [LOAN, "ten other words that are nowhere in any of these"]), True),
    ],
)
def test_another_data_set_is_refused(run, tmp_path, change, needs_rows, rows):
    """As far as rows, or sums alone, can tell: labels, ground truth, counts."""
    per_query = tmp_path / "rows.csv" if rows else None
    result = evaluate_file(run, [1, 2], per_query=per_query, chunk_size=2, matcher="coverage")
    data = change(load_dataset(run))
    if needs_rows and not rows:
        assert len(result.diagnose(**ASKED, dataset=data).items) == 4
        return
    with blamed("dataset"):
        result.diagnose(**ASKED, dataset=data)


def test_a_matcher_that_no_signature_tells_is_asked_for(run):
    """One of your own, of a run in parts."""
    streamed = evaluate_file(run, 1, chunk_size=2, matcher=SameLength())
    with blamed("matcher"):
        streamed.diagnose(**ASKED, dataset=run)
    diagnosis = streamed.diagnose(**ASKED, dataset=run, matcher=SameLength())
    assert diagnosis.matcher == SameLength().signature


def test_budgets_are_cutoffs(one):
    """Of 9, 10 and 10 words, the first two documents fit into 20."""
    assert causes(one.diagnose(CHUNKS, k="20w")) == causes(one.diagnose(CHUNKS, k=2))


# --- what is made of it ----------------------------------------------------------------------


def test_the_table_and_the_waterfall_add_up(one):
    """Found, pieces, rank, search, splitter, version, index: 1, 0, 1, 1, 1, 0, 2 of 6."""
    diagnosis = one.diagnose(CHUNKS, k=2)
    table, steps = diagnosis.table, diagnosis.waterfall()
    assert table["class"].to_list() == causes(diagnosis)
    assert table["query"].unique().tolist() == ["When do you open?"]
    assert table["item"].to_list() == [1, 2, 3, 4, 5, 6]
    assert table["rank"].isna().sum() == 4
    kinds = ["object", "int64", "int64", "object", "Int64", *["Float64"] * 2]
    assert table.dtypes.astype(str).to_list()[:7] == kinds
    assert steps["share"].to_list() == [1 / 6, 0, 1 / 6, 1 / 6, 1 / 6, 0, 2 / 6]
    up_to = [1 / 6, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 4 / 6, 1]
    assert steps["cumulative"].to_list() == pytest.approx(up_to)
    assert steps["label"].to_list()[:3] == ["recall now", "with pieces", "with k = 3"]
    assert steps["cumulative"].iloc[0] == one["micro_recall@2"]
    # Recall now is with pieces where the matcher joins them.
    result = evaluated([[LOAN, PETS]], [[CHUNKS[2], CHUNKS[3]]], "coverage(union=yes)")
    step = result.diagnose(CHUNKS, k=2).waterfall().loc["found_in_pieces"]
    assert step["label"].startswith("recall now")
    assert step["cumulative"] == result["micro_recall@2"]


@pytest.mark.parametrize(
    ("passages", "documents", "options", "said", "korean"),
    [
        ([FEE], [CHUNKS[0]], {"index": CHUNKS}, "Nothing is lost",
         "k = 2 안에서 모든 구절을 찾았습니다."),
        (["!!!"], ["x"], {"index": CHUNKS}, "Nothing to diagnose", ""),
        ([LOAN], ["x"], {"index": CHUNKS}, "chunks have 40 characters (9 words) and overlap by 0;",
         "구절의 100%가 청크 경계에서 잘렸습니다."),
        ([FEE, LOAN], [CHUNKS[0]], {"index": CHUNKS}, "50 % of passages",
         "구절의 50%가 청크 경계에서 잘렸습니다."),
        ([LOAN], [CHUNKS[2], CHUNKS[3]], {"index": CHUNKS}, "in pieces", ""),
        ([PETS], ["x"], {"index": CHUNKS}, "longer lists", "더 긴 목록을 검색하면"),
        ([PETS], ["x"], {"index": CHUNKS, "deeper": [["x", "y", "z"]]}, "first 3", ""),
        ([PETS], ["x", "y", PETS], {}, "rerank the first 3",
         "구절의 100%, 곧 하나가 3위로"),
        ([NOWHERE], ["x"], {"index": CHUNKS}, "ingested", ""),
        ([PARSED], ["x"], {"index": CHUNKS}, "parsing",
         "1개 중 1개는 같은 글자가 색인에 있으니"),
        ([NOWHERE], ["x"], {}, "chunks of the store", ""),
    ],
)  # fmt: skip
def test_the_summary_names_the_largest_cause(passages, documents, options, said, korean):
    """And the remedy it points to, as one sentence, with the same numbers in Korean."""
    result = evaluated([passages], [documents], "coverage")
    diagnosis = result.diagnose(k=2, foreign_index="allow", **options)
    for language, part in (("en", said), ("ko", korean)):
        summary = diagnosis.summary(language)
        assert part in summary
        assert summary.endswith(".")
        assert not {"{", "}", "None"} & {*summary, *summary.split()}


def test_the_summary_doubts_a_matcher_that_knows_no_words():
    """All the letters are there: the passage is cut apart, and "contains" cannot tell."""
    result = evaluated([[LOAN]], [[CHUNKS[0]]], "contains")
    diagnosis = result.diagnose(
        [*CHUNKS[:2], " ".join(CHUNKS[2:4]).replace(" films", " any films")]
    )
    assert causes(diagnosis) == ["not_in_index"]
    assert diagnosis.items[0].letters == 1.0
    assert "coverage" in diagnosis.summary()


def test_a_diagnosis_is_saved_and_read_back(one, tmp_path):
    """All of it, and of texts what is not in the index, and what comes nearest."""
    diagnosis = one.diagnose(CHUNKS, k=2)
    assert read_back(diagnosis, tmp_path, "d.json") == diagnosis
    texts = (tmp_path / "d.json").read_text("utf-8")
    assert NOWHERE[:40] in texts
    assert LOAN[:40] not in texts


def test_chunks_are_taken_as_files_hold_them():
    """The names that stores give to a text and its id; one that has none is refused."""
    evaluator = OfflineRetrievalEvaluator([["we open at nine"]], [["we open at nine"]])
    result = evaluator.evaluate(1)
    forms = ({"text": "we open at nine"}, {"contents": "we open at nine", "doc_id": "7", "page": 3})
    for chunk in forms:
        assert result.diagnose([chunk]).table["class"].to_list() == ["found"]
        found = audit([{"question": "When?", "actual": ["we open at nine"]}], [chunk])
        assert not found.findings["dangling"].rows


# --- what is said afterwards -----------------------------------------------------------------

DESK = [
    "대출기간은 삼 주이고 한 번 연장합니다",
    "열람실은 밤 열 시에 닫습니다",
    "회원증은 안내대에서 만듭니다",
]


def test_what_is_not_in_the_index_says_what_comes_nearest(one):
    """The chunk that has most of it, or else most of its words; the passage beside it."""
    *_, nowhere = one.diagnose(CHUNKS, k=2).items
    assert nowhere.looked_for == NOWHERE[: len(nowhere.looked_for)]
    texts = ["A lost card is replaced at the desk on the same day", "Tea is served in the garden"]
    passages = [["The garden is lit until ten in summer"], ["Bicycles need lamps"]]
    result = covered(passages, [texts[:1]] * 2)
    garden, bicycles = result.diagnose(texts).items
    assert (garden.nearest_chunk, garden.nearest_text) == (1, texts[1])
    assert (bicycles.looked_for, bicycles.nearest_chunk) == ("Bicycles need lamps", None)
    notes = page_of(result.diagnose(texts)).notes
    assert [texts[1] in note for note in notes] == [True, False]


@pytest.mark.parametrize(
    ("question", "shares"),
    [
        # 대출 begins 대출기간은, and 연장 연장합니다; 몇 stands nowhere.
        ("대출 연장을 몇", (2 / 3, 0.0)),
        ("대출기간은 얼마", (1 / 2, 1 / 2)),
        ("주차장은 어디", (0.0, 0.0)),
    ],
)
def test_words_in_common_whatever_their_endings(question, shares):
    """Korean words share stems; only those that are written alike are told apart."""
    result = covered([[DESK[0]]], [[DESK[2]]], queries=[question])
    (item,) = result.diagnose(DESK, deeper=[[DESK[2]]]).items
    assert (item.query_overlap, item.same_words) == shares
    assert ("Kiwi" in page_of(result.diagnose(DESK, deeper=[[DESK[2]]])).verdict) == (
        shares[0] > shares[1] == 0.0
    )


def test_sizes_as_splitters_take_them():
    """Characters of a chunk, and those that the next one begins with."""
    text = "abcdefghij klmnopqrst uvwxyz " * 2 + LOAN
    chunks = [text[at : at + 30] for at in range(0, len(text) - 10, 20)]
    diagnosis = covered([[LOAN]], [[chunks[0]]]).diagnose(chunks)
    assert (diagnosis.chunk_characters, diagnosis.chunk_overlap) == (30, 10)


@pytest.mark.parametrize(
    ("passage", "chunk", "advice"),
    [
        ("The fee of 05/03/24 applies to all readers of the city library",
         "The fee of 2024-03-05 applies to all readers of the city library", "format"),
        ("The fee of 21 euros applies to all readers of the city library",
         "The fee of 28 euros applies to all readers of the city library", "wanted"),
        ("The fee for dogs applies to all readers of the city library",
         "The fee for boats applies to all readers of the city library", "guard=numbers"),
    ],
)  # fmt: skip
def test_what_to_do_about_another_version(passage, chunk, advice):
    """A date that is spelled otherwise is compared, before anything is indexed."""
    diagnosis = covered([[passage]], [[CHUNKS[0]]]).diagnose([chunk, CHUNKS[0]])
    assert causes(diagnosis) == ["contradicted"]
    said = page_of(diagnosis).verdict
    assert [one for one in ("format", "wanted", "guard=numbers") if one in said] == [advice]


# --- another index, another result -------------------------------------------------------------

FOREIGN = [
    "bicycles may be parked in the yard behind the town hall all year",
    "the swimming pool opens at seven and closes at ten in the evening",
]
KOREAN = [
    "도서관은 평일 오전 아홉 시에 열고 오후 여섯 시에 닫습니다",
    "책은 한 번에 다섯 권까지 두 주 동안 빌릴 수 있습니다",
    "주차장은 회원이라면 누구나 무료로 이용할 수 있습니다",
]


def looked_up(documents, index, matcher="coverage", **options):
    """Return what was looked up, and what was said."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        diagnosis = evaluated([[NOWHERE]], [documents], matcher).diagnose(index, **options)
    return diagnosis.looked_up, [one.message for one in caught]


@pytest.mark.parametrize(("documents", "index"), [
    (CHUNKS[:4], CHUNKS),
    ([CHUNKS[0].upper() + "!", CHUNKS[0].replace(" ", "\n")], CHUNKS),  # folded
    (["fee for a lost card is fi"], CHUNKS),  # within a chunk, cut inside a word
    ([one.replace(" ", "") for one in KOREAN], KOREAN),
    ([KOREAN[0][3:20]], KOREAN),
    ([{"id": "7", "page_content": "a lost card is five"}], [{"id": "7", "page_content": ""}]),
    ([{"id": "7", "page_content": f"{FOREIGN[0]}. {CHUNKS[0]}"}],  # under a heading
     [{"id": "7", "page_content": CHUNKS[0]}]),
    ([{"id": "7", "page_content": CHUNKS[0] + " and ten cents"}],  # edited since
     [{"id": "7", "page_content": "Today " + CHUNKS[0] + ", no more"}]),
    ([{"id": 7, "page_content": ""}], [{"id": "7", "page_content": CHUNKS[0]}]),
], ids=str)  # fmt: skip
def test_what_was_retrieved_is_there(documents, index):
    """By its id, by its letters, or as a part of a chunk; then nothing is said."""
    found, said = looked_up(documents, index)
    assert (found.n, found.there, found.alike) == (len(documents), len(documents), 0)
    assert not said


@pytest.mark.parametrize(("document", "index"), [
    (". ".join(CHUNKS[:4]), CHUNKS),  # a parent document
    (" ".join(FOREIGN) + " " + CHUNKS[0], CHUNKS),  # a chunk, behind a long heading
    (CHUNKS[0] + " and so on", [CHUNKS[0] + " " + one for one in FOREIGN]),  # nine of twelve words
    (" ".join(KOREAN), KOREAN),  # a window of sentences
    ("도서관 안내 > 이용 시간: " + KOREAN[0], KOREAN),
], ids=["parent", "heading", "most_words", "window", "korean_heading"])  # fmt: skip
def test_what_contains_a_chunk_or_most_of_its_words_is_not_foreign(document, index):
    """It is no chunk as it is, which is said; but the index is not refused."""
    found, said = looked_up([document], index)
    assert (found.n, found.there, found.alike) == (1, 0, 1)
    assert len(said) == 1


@pytest.mark.parametrize("index", [FOREIGN, KOREAN, [{"id": "9", "page_content": FOREIGN[0]}]])
def test_another_index_is_refused(index):
    """None of the documents is in it; what it lacks says nothing of the index that was searched."""
    documents = [{"id": str(n), "page_content": one} for n, one in enumerate(CHUNKS)]
    with blamed("index") as refused:
        looked_up(documents, index)
    assert "foreign_index" in str(refused.value.fix)
    found, said = looked_up(documents, index, foreign_index="allow")
    assert (found.n, found.there, found.alike, len(said)) == (7, 0, 0, 1)


def test_a_tenth_is_enough():
    """One of ten is there, or one of eleven; each document counts once, by text or by id."""
    others = [f"{number} {FOREIGN[0]}" for number in range(10)]
    found, said = looked_up([CHUNKS[0], CHUNKS[0], *others[:9]], CHUNKS)
    assert (found.n, found.there, len(said)) == (10, 1, 1)
    found, said = looked_up(["1", "2", "8"], ["1", "2", "3"], "id")
    assert (found.n, found.there, len(said)) == (3, 2, 1)
    chunk = {"id": "a", "page_content": CHUNKS[0]}
    for lists in (([CHUNKS[0], *others], CHUNKS), (["1", "2"], [chunk], "id")):
        with pytest.raises(InvalidInput):
            looked_up(*lists)
    bare = {"page_content": "", "metadata": {"page": 1}}
    with pytest.warns(match="neither"):
        diagnosis = evaluated([[bare]], [[bare]], MetadataMatcher("page")).diagnose([bare], k=1)
    assert diagnosis.looked_up == LookedUp(0, 0, 0, 1)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_was_looked_up_is_kept_and_shown(tmp_path, language):
    """In a file, and beside the waterfall."""
    result = covered([[NOWHERE]], [[CHUNKS[0], FOREIGN[0]]])
    diagnosis = result.diagnose(CHUNKS)
    again = read_back(diagnosis, tmp_path)
    assert again == diagnosis
    assert (again.looked_up, again.of) == (diagnosis.looked_up, diagnosis.of)
    result.report(tmp_path / "page.html", diagnosis=again, language=language, intervals=False)
    with speaking(language):
        note, _missing = page_of(diagnosis).notes
    assert note in (tmp_path / "page.html").read_text("utf-8")
    assert page_of(diagnosis).notes[0] in repr(diagnosis)


def test_lists_without_a_document_are_no_deeper_lists(one):
    """Of nothing that comes back, nothing can be said to be ranked too low or not retrieved."""
    queries = [f"q{number}" for number in range(2)]
    two = covered([[FEE], [NOWHERE]], [[CHUNKS[0]]] * 2, queries=queries)
    blank = [[" "], [{"page_content": ""}]]
    for deeper in ([[]] * 2, blank, {key: [] for key in queries}, lambda question: ["\n"]):
        with blamed("deeper"):
            two.diagnose(CHUNKS, deeper, 1)
    # The other query has documents: this one was looked for, and nothing came back.
    for nothing in ([], [" "]):
        with pytest.warns(KragEvalWarning, match="deeper list: 1 of 1"):
            diagnosis = two.diagnose(CHUNKS, [CHUNKS[:3], nothing], 1)
        assert diagnosis.depth == 3


@pytest.mark.parametrize("texts", [FOREIGN, KOREAN])
def test_numbers_that_run_from_0_everywhere_are_no_sign_of_the_same_index(texts):
    """An id counts for nothing where another text stands under it; alone, it is enough."""
    documents = [{"id": str(n), "page_content": one} for n, one in enumerate(CHUNKS[:2])]
    index = [{"id": str(n), "page_content": one} for n, one in enumerate(texts)]
    with pytest.raises(InvalidInput):
        looked_up(documents, index)
    bare = [{**one, "page_content": ""} for one in index]
    assert looked_up(documents, bare)[0].there == 2
    # A text under another number is that text all the same.
    assert looked_up(documents, [*index, *CHUNKS])[0].there == 2


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 1.0])
def test_of_very_many_documents_not_all_are_looked_for(monkeypatch, share):
    """Only so many as tell that a tenth is there; how many were left out is said."""
    monkeypatch.setattr("krag_eval.diagnosis.causes._MANY", 20)

    def distinct(start):
        words = ("".join(chr(97 + int(one)) for one in str(n)) for n in range(start, start + 1200))
        return [" ".join(six) for six in zip(*[words] * 6, strict=True)]

    documents, others = distinct(1_000), distinct(5_000)
    n_same = round(200 * share)
    index = [f"Heading. {one}" for one in [*documents[:n_same], *others[n_same:]]]
    found, said = looked_up(documents, index, foreign_index="allow")
    assert (found.n, found.alike) == (200, 0)
    if share < 1:  # those looked for first are too few
        assert (found.there, found.skipped) == (n_same, 0)
    else:
        assert 20 <= found.there == 200 - found.skipped < 40
        assert f"{found.skipped} more were not looked for" in page_of(found).notes[0]
    # Where nothing is known to be missing, nothing is said.
    assert bool(said) == (share < 1)


def systems():
    """Return two results on the same queries that score the same, of different lists."""
    actual = [[FEE], [NOWHERE], [PETS]]
    first = [[CHUNKS[0]], [CHUNKS[1]], [CHUNKS[1]]]
    other = [[CHUNKS[0]], [CHUNKS[4]], [CHUNKS[1]]]
    return [covered(actual, lists) for lists in (first, other)]


def test_a_diagnosis_of_another_system_is_refused(tmp_path):
    """The numbers are the same, and the lists are not."""
    ours, theirs = systems()
    assert all(ours.averages()[name] == theirs.averages()[name] for name in ("ndcg", "hit_rate"))
    diagnosis = theirs.diagnose(CHUNKS)
    for use in (
        lambda: ours.by("diagnosis", diagnosis=diagnosis),
        lambda: ours.report(tmp_path / "r.html", diagnosis=diagnosis),
    ):
        with blamed("diagnosis"):
            use()


@pytest.mark.parametrize("texts", [True, False])
def test_a_diagnosis_knows_its_result_when_both_come_from_files(tmp_path, texts):
    """Saved with its texts or without; at another cutoff, too."""
    ours, _ = systems()
    diagnosis = read_back(ours.diagnose(CHUNKS), tmp_path)
    assert read_back(ours, tmp_path, texts=texts).by("diagnosis", diagnosis=diagnosis).rows
    assert systems()[0].by("diagnosis", 1, diagnosis=diagnosis).rows


def test_a_diagnosis_saved_before_results_were_told_apart_is_taken(tmp_path):
    """Its queries and items are compared, as they were then."""
    ours, theirs = systems()
    theirs.diagnose(CHUNKS).to_json(tmp_path / "d.json")
    for name in ("of", "looked_up"):
        changed(tmp_path / "d.json", name, MISSING, sealed=False)
    before = Diagnosis.from_json(tmp_path / "d.json")
    assert before.looked_up is None
    assert ours.by("diagnosis", diagnosis=before).rows
