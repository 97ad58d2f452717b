"""Ground truth in an index that was cut anew: by hand on short texts, and against a slow search."""

import json
import math
import random

import pytest

from krag_eval import AnyOf, KragEvalWarning, load_dataset, reanchor
from krag_eval.datasets import Dataset
from krag_eval.datasets.reanchor import STATES
from krag_eval.errors import InvalidInput
from krag_eval.report import write_report

HOURS = "The library is open from nine to eight on weekdays and closed on Sundays"
LOANS = "Books are lent for 21 days and may be renewed two times without any fee"
LOST = "Readers are told that lost books cost the price of a new one and no fine is taken from them"
CARD = "A card is free for children of the city and costs ten euros a year for all others"
KO = (
    "시립도서관은 평일 오전 9시부터 오후 8시까지 문을 열고 일요일에는 쉽니다 "
    "대출 기간은 21일이며 두 번 연장합니다"
)


def index(*texts, **named):
    """Return chunks that are numbered, and some that have other ids."""
    return [{"id": str(at), "text": one} for at, one in enumerate(texts)] + [
        {"id": one, "text": text} for one, text in named.items()
    ]


OLD = index(HOURS, LOANS, LOST, CARD, ko=KO)


def quote(text, identity=None, **metadata):
    content = {"page_content": text} | ({} if identity is None else {"id": identity})
    return content | ({"metadata": metadata} if metadata else {})


def golden(*actual, **more):
    return Dataset([f"q{at}" for at in range(len(actual))], [*actual], **more)


def row(label, new, old=OLD, **options):
    """Return what became of one ground truth, ids where it is a text."""
    options = {"by": "id"} | options
    return reanchor(golden([label]), old, new, **options).rows[0]


class TestStates:
    """What can become of a ground truth."""

    @pytest.mark.parametrize(
        ("label", "new", "state", "ids", "alternatives"),
        [
            ("0", index(HOURS, CARD), "unchanged", ("0",), ()),
            # Case, punctuation and markup are nothing to coverage; the ordinal 0 is another chunk.
            ("0", index(CARD, f"<b>{HOURS.upper()}.</b>"), "moved", ("1",), ()),
            ("0", index(CARD, f"Welcome. {HOURS}. Come in."), "absorbed", ("1",), ()),
            # The same id, and more text.
            ("0", index(f"{HOURS}. Come in."), "absorbed", ("0",), ()),
            # Whole and equal, else the smallest that holds it, else the first of these.
            ("0", index(f"{HOURS} a", f"{HOURS} a b", b=HOURS), "moved", ("b",), ("0", "1")),
            ("0", index(f"{HOURS} a b", f"{HOURS} a", f"{HOURS} c"), "absorbed", ("1",),
             ("2", "0")),
            # Ten words are too few of nineteen; together they are enough, in the order of the text.
            ("2", index(CARD, "a new one and no fine is taken from them",
                        "Readers are told that lost books cost the price of"), "split",
             ("2", "1"), ()),
            ("1", index(CARD, LOANS.replace("21", "28")), "changed", (), ()),
            ("1", index(CARD, LOANS.replace("may", "may not")), "changed", (), ()),
            ("1", index(CARD, HOURS), "gone", (), ()),
            # A quote in the chunk it names goes where that chunk goes.
            (quote("nine to eight on weekdays", "0"), index(HOURS), "unchanged", ("0",), ()),
            (quote("nine to eight on weekdays", "0"), index(CARD, HOURS), "moved", ("1",), ()),
            (quote("nine to eight on weekdays", "0"), index("from nine to eight on weekdays"),
             "absorbed", ("0",), ()),
            (quote("nine to eight on weekdays"), index(CARD, HOURS), "moved", ("1",), ()),
            # Letters are read where the text is Korean, whatever its spaces.
            ("ko", index(CARD, KO.replace(" ", "")), "moved", ("1",), ()),
            ("ko", index(KO[:32], KO[32:]), "split", ("0", "1"), ()),
            ("ko", index(KO.replace("21일", "14일")), "changed", (), ()),
            # What has no words is looked for to the letter.
            (quote("?!"), index("?!", "!!"), "moved", ("0",), ()),
        ],
    )  # fmt: skip
    def test_one_label(self, label, new, state, ids, alternatives):
        """By its text, whatever its id is in the new index."""
        old = [*OLD, {"id": "odd", "text": "?!"}]
        found = row(label, new, old)
        assert (found.state, found.new, found.alternatives) == (state, ids, alternatives)

    def test_what_a_chunk_says_otherwise(self):
        """The row names the chunk, and the two numbers."""
        found = row("1", index(CARD, LOANS.replace("21", "28")))
        assert (found.against, *found.said) == ("1", "number", "21", "28")
        assert found.share == pytest.approx(10 / 15)

    def test_the_best_alternative_decides(self):
        """Of interchangeable documents one that is there is enough; the others keep their texts."""
        found = reanchor(golden([AnyOf(["0", "2"])]), OLD, index(CARD, LOST), by="id")
        assert [one.state for one in found.rows] == ["moved"]
        first, second = found.dataset.actual[0][0].alternatives
        assert first == quote(LOST, "1")
        assert second == quote(HOURS, "0 (gone)")

    def test_counts_gates_and_table(self):
        """All states are counted, and any may fail a build."""
        found = reanchor(golden(["0"], ["1"], ["2"]), OLD, index(HOURS, CARD, b=LOST), by="id")
        assert found.counts == dict.fromkeys(STATES, 0) | {"unchanged": 1, "moved": 1, "gone": 1}
        assert found.stale == pytest.approx(2 / 3)
        assert found.check("changed,split").passed
        assert [one.passed for one in found.check(["gone", "changed"]).gates] == [False, True]
        assert [*found.table["state"]] == ["unchanged", "gone", "moved"]
        assert json.loads(json.dumps(found.to_dict()))["counts"]["gone"] == 1
        with pytest.raises(InvalidInput) as refused:
            found.check("lost")
        assert refused.value.argument == "fail_on"

    def test_no_ground_truth(self, tmp_path):
        """Nothing is stale, and all of it can be shown."""
        found = reanchor(golden([]), OLD, OLD)
        assert math.isnan(found.stale)
        write_report(found, tmp_path / "page.html")
        assert found.summary() == ""


class TestDataset:
    """The data set with the new ids."""

    def test_what_is_kept(self):
        """Ids are new, texts stand beside them; what was retrieved is of the old index."""
        data = golden(
            [{"id": "0", "page_content": "", "metadata": {"grade": 2}}], predicted=[["0"]],
            questions=["When?"], tags={"kind": ["hours"]}, judged=[["0"]],
            defaults={"grade_key": "grade"},
        )  # fmt: skip
        found = reanchor(data, OLD, index(CARD, f"{HOURS}."))
        assert found.dataset.actual == [[quote(HOURS, "1", grade=2)]]
        assert (found.dataset.predicted, found.n_retrieved) == (None, 1)
        kept = ("queries", "questions", "tags", "judged", "defaults")
        assert [getattr(found.dataset, one) for one in kept] == [getattr(data, one) for one in kept]

    def test_chunks_that_hold_it_entirely_are_interchangeable(self):
        """One that lacks a few words is named, and is no ground truth."""
        new = index(f"a {HOURS} b c", f"a {HOURS} b", HOURS.removesuffix(" Sundays"))
        found = reanchor(golden(["0"]), OLD, new, by="id")
        assert found.rows[0].alternatives == ("0", "2")
        assert found.dataset.actual == [[AnyOf([quote(HOURS, "1"), quote(HOURS, "0")])]]

    @pytest.mark.parametrize(
        ("new", "identity"),
        [
            (index(LOANS.replace("21", "28")), "1"),
            (index(CARD, LOANS.replace("21", "28")), "1 (changed)"),
            (index(CARD, HOURS), "1 (gone)"),
            (index(CARD, HOURS, **{"1 (gone)": LOST}), "1 (gone) (gone)"),
        ],
    )
    def test_no_id_of_another_chunk(self, new, identity):
        """The id stays where the new index does not use it."""
        found = reanchor(golden(["1"]), OLD, new, by="id")
        assert found.dataset.actual == [[quote(LOANS, identity)]]

    HALVES = ("Readers are told that lost books cost the price of",
              "a new one and no fine is taken from them")  # fmt: skip

    @pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
    def test_pieces_there_and_back(self, tmp_path, ending):
        """A split passage is one item again where it is whole again, also through a file."""
        middle = index(CARD, *self.HALVES)
        there = reanchor(golden(["2", "0"]), OLD, [*middle, *index(h=HOURS)], by="id")
        pieces = [
            quote(part, identity, passage=LOST)
            for part, identity in zip(self.HALVES, "12", strict=True)
        ]
        assert there.dataset.actual == [[*pieces, quote(HOURS, "h")]]
        there.dataset.save(tmp_path / f"golden.{ending}")
        again = load_dataset(tmp_path / f"golden.{ending}")
        back = reanchor(again, [*middle, *index(h=HOURS)], OLD)
        assert back.dataset.actual == [[quote(LOST, "2"), quote(HOURS, "0")]]
        assert [one.item for one in back.rows] == [1, 3]

    def test_pieces_that_stay(self):
        """They are unchanged where their chunks are, and are written as they were."""
        middle = index(CARD, *self.HALVES)
        there = reanchor(golden(["2"]), OLD, middle, by="id")
        again = reanchor(there.dataset, middle, [*middle, *index(x=HOURS)])
        assert [one.state for one in again.rows] == ["unchanged"]
        assert again.dataset == there.dataset

    def test_pieces_of_one_of_several(self):
        """Any alternative stands in for each piece, and all are one item again."""
        middle = index(CARD, *self.HALVES)
        there = reanchor(golden([AnyOf(["2", "1"])]), OLD, middle, by="id")
        assert [len(one.alternatives) for one in there.dataset.actual[0]] == [2, 2]
        with pytest.warns(KragEvalWarning):  # of "1 (gone)", which is in no index
            back = reanchor(there.dataset, middle, OLD)
        assert back.dataset.actual == [[AnyOf([quote(LOST, "2"), quote(LOANS, "1")])]]

    def test_metadata_of_that_name(self):
        """What a user calls a passage is no whole of which the text is a part."""
        data = golden([quote(HOURS, "0", passage="p. 3")])
        found = reanchor(data, OLD, index(CARD, HOURS))
        assert found.dataset.actual == [[quote(HOURS, "1", passage="p. 3")]]
        with pytest.raises(InvalidInput) as refused:  # it would be lost
            reanchor(data, OLD, index(HOURS[:32], HOURS[32:]))
        assert (refused.value.argument, refused.value.query) == ("dataset", 0)


class TestWhatIsRead:
    """Ids and texts of the ground truth, and what is refused."""

    @pytest.mark.filterwarnings("ignore:.*nowhere in the old index")  # of "0" as a text
    @pytest.mark.parametrize(
        ("data", "by", "read_as"),
        [
            (golden(["0", "1"]), "auto", "id"),
            (golden([HOURS]), "auto", "text"),
            (golden([quote(HOURS)]), "auto", ""),
            (golden([HOURS, "0"]), "text", "text"),
            (golden(["0"], defaults={"matcher": "id"}), "auto", "id"),
            # As judgements have it that carry a grade.
            (golden([quote("0", "0", grade=2)]), "auto", ""),
        ],
    )
    def test_plain_texts(self, data, by, read_as):
        """They are ids where that is said, or the old index has them all."""
        found = reanchor(data, OLD, OLD, by=by)
        assert (found.read_as, found.rows[0].text) == (read_as, HOURS)

    @pytest.mark.parametrize(
        ("data", "old", "new", "options", "argument"),
        [
            (golden(["0", "7"]), OLD, OLD, {}, "dataset"),  # ids, or one text
            (golden(["0", "7"]), OLD, OLD, {"by": "id"}, "old"),
            (golden(["7"]), OLD, OLD, {"by": "id"}, "old"),
            # None of the ids, whatever texts there are; none of the texts.
            (golden([quote(HOURS, "7")]), OLD, OLD, {}, "old"),
            (golden(["7"]), OLD, OLD, {}, "old"),
            (golden([quote("", "0")]), index(""), OLD, {}, "old"),
            (golden(["0"]), [*OLD, *index(CARD)], OLD, {}, "old"),
            (golden(["0"]), OLD, [*OLD, *index(CARD)], {}, "new"),
            (golden(["0"]), OLD, [HOURS], {}, "new"),
            (golden(["0"]), OLD, [], {}, "new"),
            (golden(["0"]), None, OLD, {}, "old"),
            (golden(["0"]), OLD, OLD, {"by": "ids"}, "by"),
        ],
    )
    def test_refused(self, data, old, new, options, argument):
        """What would end in everything being gone names the argument."""
        with pytest.raises(InvalidInput) as refused:
            reanchor(data, old, new, **options)
        assert refused.value.argument == argument

    @pytest.mark.parametrize(
        ("label", "unknown", "strays", "state"),
        [
            (quote(HOURS, "7"), 1, 0, "moved"),
            (quote(HOURS, "3"), 0, 1, "moved"),  # the chunk of that id is another one
            (quote("nobody ever wrote any of this down"), 0, 1, "gone"),
            (quote(f"{LOST} {CARD}"), 0, 0, "unchanged"),  # over two old chunks, and the same new
            (quote(f"{HOURS} {LOST}"), 0, 0, "split"),
        ],
    )
    def test_labels_beside_the_old_index(self, label, unknown, strays, state):
        """They are counted, told of, and looked for by their own texts."""
        data, new = golden(["0"], [label]), index(LOANS, HOURS, LOST, CARD)
        if unknown or strays:
            with pytest.warns(KragEvalWarning):
                found = reanchor(data, OLD, new)
        else:
            found = reanchor(data, OLD, new)
        assert (found.n_unknown, found.n_strays) == (unknown, strays)
        assert found.rows[1].state == state

    def test_paths(self, tmp_path):
        """A data set and both indexes may be files."""
        for name, rows in (("old", OLD), ("new", index(HOURS)),
                           ("golden", [{"question": "When?", "actual": ["0"]}])):  # fmt: skip
            lines = (json.dumps(one) + "\n" for one in rows)
            (tmp_path / f"{name}.jsonl").write_text("".join(lines), "utf-8")
        files = [tmp_path / f"{name}.jsonl" for name in ("golden", "old", "new")]
        assert reanchor(*files).counts["unchanged"] == 1


# A slow search: runs of five words, looked for as texts in every chunk.


def plainly(words):
    return f" {' '.join(words)} "


def expected(at, old, new):
    """Return the state of an old chunk in a new index, in which a number may be one more."""
    words, chunks = old[at], [plainly(one) for one in new]
    if at < len(new) and new[at] == words:
        return "unchanged"
    if words in new:
        return "moved"
    n, number = len(words), next(place for place, one in enumerate(words) if one.isdigit())
    other = [*words[number - 2 : number], str(int(words[number]) + 1)]
    other += words[number + 1 : number + 3]
    alone, together, otherwise = [0], [False] * n, [False] * n
    for chunk in chunks:
        held = [False] * n
        for start in range(n - 4):
            if plainly(words[start : start + 5]) in chunk:
                held[start : start + 5] = [True] * 5
        says_otherwise = plainly(other) in chunk
        if says_otherwise and sum(held) >= n / 2:
            otherwise = [True] * n
            continue
        into = otherwise if says_otherwise else together
        into[:] = [one or more for one, more in zip(into, held, strict=True)]
        alone += [0 if says_otherwise else sum(held)]
    if max(alone) >= 0.8 * n:
        return "absorbed"
    if sum(together) >= 0.8 * n:
        return "split"
    with_others = [one or more for one, more in zip(together, otherwise, strict=True)]
    return "changed" if any(otherwise) and sum(with_others) >= 0.8 * n else "gone"


@pytest.mark.parametrize("size", [12, 20, 30, 47, 90])
@pytest.mark.parametrize("overlap", [0, 6])
def test_as_a_slow_search(size, overlap):
    """Cut anew at any size, with chunks lost and numbers changed, nothing differs."""
    rng = random.Random(100 * size + overlap)
    words = [f"{rng.choice('bcdfgklm')}{one}".translate(LETTERS) for one in range(1800)]
    words[15::30] = map(str, rng.sample(range(1000, 9000, 2), 60))
    old = [words[at : at + 30] for at in range(0, 1800, 30)]
    now = [str(int(one) + 1) if one.isdigit() and rng.random() < 0.3 else one for one in words]
    starts = range(0, 1800, size - overlap)
    new = [now[at : at + size] for at in starts if rng.random() < 0.9]
    data = golden(*([str(at)] for at in range(len(old))))
    found = reanchor(data, index(*map(" ".join, old)), index(*map(" ".join, new)))
    states = [one.state for one in found.rows]
    assert states == [expected(at, old, new) for at in range(len(old))]
    assert len({*states}) > 2


LETTERS = str.maketrans("0123456789", "aeiourstnw")
