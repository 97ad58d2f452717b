"""Ground truth in an index that was cut anew: by hand on short texts, and against a slow search."""

import json
import math
import random
import re
from itertools import chain, pairwise
from pathlib import Path

import pytest
import reference_reanchor as reference
from cut_texts import SPLITS, TEXTS, cut, stretches

from krag_eval import AnyOf, KragEvalWarning, load_dataset, reanchor
from krag_eval.datasets import Dataset
from krag_eval.errors import InvalidInput
from krag_eval.reanchoring.reanchor import STATES
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
            # In pieces that are shorter than a run of five words; with other spaces.
            (quote("on weekdays and closed on Sundays", "0"), index(CARD, "It is open on weekdays",
             "and closed on Sundays."), "split", ("1", "2"), ()),
            ("0", index(CARD, f"A{HOURS.replace(' on ', 'on')}"), "absorbed", ("1",), ()),
            (quote("renewed two times. The fee is 5"), index("renewedtwotimes.Thefeeis5euros"),
             "absorbed", ("0",), ()),
            (quote("renewed two times. The fee is 5"), index("renewedtwotimes.Thefeeis50euros"),
             "gone", (), ()),
            # As few chunks as hold it, of which each reaches as far as any.
            ("3", index(CARD[:40], CARD[:52], CARD[24:80], CARD[48:]), "split", ("1", "3"), ()),
            # Eleven words are too few of fifteen, so four more are no piece too short.
            ("1", index(LOANS[:54], LOANS[39:]), "split", ("0", "1"), ()),
            # Two words stand in many places; what stood around them tells which is meant.
            (quote("on Sundays", "0"), index("on Sundays", f"{HOURS}, welcome", "on Sundays a b"),
             "moved", ("0",), ("1", "2")),
            (quote("on Sundays", "0"), index("a on Sundays", f"{HOURS}, welcome"), "absorbed",
             ("1",), ("0",)),
            # What has no words is looked for to the letter.
            (quote("?!"), index("?!", "!!"), "moved", ("0",), ()),
        ],
    )  # fmt: skip
    def test_one_label(self, label, new, state, ids, alternatives):
        """By its text, whatever its id is in the new index."""
        old = [*OLD, *index(odd="?!", fee="renewed two times. The fee is 5 euros")]
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

    @pytest.mark.parametrize(
        ("label", "new", "holds"),
        [
            ("0", index(f"{HOURS}. Come in."), True),  # the same id, and more text
            ("0", index(CARD, HOURS), False),
            (quote(HOURS), index(CARD, HOURS), True),  # a text alone, wherever it stands
            (quote(HOURS), index(HOURS[:36], HOURS[36:]), False),
            (quote(LOANS), index(LOANS.replace("21", "28")), False),
        ],
    )
    def test_labels_that_hold(self, label, new, holds):
        """A label points at what was read where its chunk, or for a text any chunk, holds it."""
        found = reanchor(golden([label]), OLD, new)
        assert (found.rows[0].holds, found.stale) == (holds, 1 - holds)

    def test_no_ground_truth(self, tmp_path):
        """Nothing is stale, and all of it can be shown."""
        found = reanchor(golden([]), OLD, OLD)
        assert (math.isnan(found.stale), found.n_stale) == (True, 0)
        write_report(found, tmp_path / "page.html")
        assert "point at" not in found.summary()


class TestDataset:
    """The data set with the new ids."""

    def test_what_is_kept(self):
        """Ids are new, texts stand beside them; lists of old ids go, what is a text stays."""
        data = golden(
            [{"id": "0", "page_content": "", "metadata": {"grade": 2}}], predicted=[["0"]],
            questions=["When?"], tags={"kind": ["hours"]}, judged=[["0"]], cited=[["0"]],
            unwanted=[[quote("Closed in winter.")]], defaults={"grade_key": "grade"},
        )  # fmt: skip
        found = reanchor(data, OLD, index(CARD, f"{HOURS}."))
        assert found.dataset.actual == [[quote(HOURS, "1", grade=2)]]
        assert found.left_out == ("predicted", "cited", "judged")
        assert [getattr(found.dataset, one) for one in found.left_out] == [None] * 3
        kept = ("queries", "questions", "tags", "unwanted", "defaults")
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

    def test_what_is_found_by_its_letters_keeps_its_text(self):
        """Its markup, too; it is no piece."""
        text = f"<b>{HOURS}</b>"
        new = index(CARD, f"A{HOURS.replace(' on ', 'on')}")
        found = reanchor(golden(["x"]), index(x=text), new)
        assert found.dataset.actual == [[quote(text, "1")]]

    def test_a_text_shorter_than_a_run_is_in_one_place(self):
        """Chunks that have two words of it as well are no ground truth."""
        new = index("no fee", f"{LOANS}.", "without any fee")
        found = reanchor(golden([quote("any fee", "1")]), OLD, new)
        assert found.dataset.actual == [[quote("any fee", "1")]]
        assert found.rows[0].alternatives == ("2",)

    def test_what_is_unchanged_stays(self):
        """A copy of the chunk was no ground truth before, and is none now."""
        old = [*OLD, *index(copy=HOURS)]
        found = reanchor(golden(["0"]), old, [*index(HOURS, f"More: {LOANS}", copy=HOURS)])
        assert (found.rows[0].state, found.rows[0].alternatives) == ("unchanged", ("copy",))
        assert found.dataset.actual == [[quote(HOURS, "0")]]

    def test_what_is_gone_comes_back(self):
        """The text is enough to find it, though no index knows the id that it got."""
        gone = reanchor(golden(["1"], ["0"]), OLD, index(HOURS, CARD)).dataset
        with pytest.warns(KragEvalWarning):
            back = reanchor(gone, index(HOURS, CARD), OLD)
        assert back.dataset.actual == [[quote(LOANS, "1")], [quote(HOURS, "0")]]

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
            (golden(["7"]), OLD, OLD, {}, "old"),  # a text that neither index has
            (golden([quote("", "0")]), [CARD], OLD, {}, "old"),
            # Nothing to look for; a span of a source is no chunk.
            (golden([" "]), OLD, OLD, {}, "dataset"),
            (golden([quote("", source="a.md", start=1, end=9)]), OLD, OLD, {}, "dataset"),
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
        ("label", "strays", "state"),
        [
            (quote(HOURS, "7"), 1, "moved"),  # the old index has no such id
            (quote(HOURS, "3"), 1, "moved"),  # the chunk of that id is another one
            (quote(CARD, "1"), 1, "unchanged"),  # an id of the new index already
            (quote("nobody ever wrote any of this down"), 1, "gone"),
            (quote(f"{LOST} {CARD}"), 0, "unchanged"),  # over two old chunks, and the same new
            (quote(f"{HOURS} {LOST}"), 0, "split"),
        ],
    )
    def test_labels_beside_the_old_index(self, label, strays, state):
        """They are counted, told of, and looked for by their own texts."""
        data, new = golden(["0"], [label]), index(LOANS, CARD, LOST, CARD, h=HOURS)
        if strays:
            with pytest.warns(KragEvalWarning):
                found = reanchor(data, OLD, new)
        else:
            found = reanchor(data, OLD, new)
        assert found.n_strays == strays
        assert found.rows[1].state == state

    def test_paths(self, tmp_path):
        """A data set and both indexes may be files."""
        for name, rows in (("old", OLD), ("new", index(HOURS)),
                           ("golden", [{"question": "When?", "actual": ["0"]}])):  # fmt: skip
            lines = (json.dumps(one) + "\n" for one in rows)
            (tmp_path / f"{name}.jsonl").write_text("".join(lines), "utf-8")
        files = [tmp_path / f"{name}.jsonl" for name in ("golden", "old", "new")]
        assert reanchor(*files).counts["unchanged"] == 1


# Against a slow search, see tests/shared/reference_reanchor.py.


def test_there_and_back_again():
    """Over two other ways of cutting, every label comes back to its chunk."""
    rng = random.Random(7)
    words = [f"{rng.choice('bcdfgklm')}{one}".translate(LETTERS) for one in range(900)]

    def cut(size, overlap, prefix):
        parts = [words[at : at + size] for at in range(0, 900, size - overlap)]
        return index(**{f"{prefix}{at}": " ".join(one) for at, one in enumerate(parts)})

    indexes = [cut(30, 0, "a"), cut(47, 10, "b"), cut(12, 0, "c"), cut(30, 0, "a")]
    data = golden(*([f"a{at}"] for at in range(30)))
    for old, new in pairwise(indexes):
        data = reanchor(data, old, new).dataset
    assert [items[0]["id"] for items in data.actual] == [f"a{at}" for at in range(30)]
    assert {len(items) for items in data.actual} == {1}


def expected(at, old, new):
    """Return where an old chunk stands in a new index, in which a number may be one more."""
    words = old[at]
    number = next(place for place, one in enumerate(words) if one.isdigit())
    more = str(int(words[number]) + 1)
    changed = [*words[number - 2 : number], more, *words[number + 1 : number + 3]]
    texts = {str(place): " ".join(one) for place, one in enumerate(new)}
    others = {name for name, one in texts.items() if f" {' '.join(changed)} " in f" {one} "}
    text, joined = " ".join(words), reference.Index({"": reference.joined(new)})

    def is_changed(_text):
        held = joined.held(words).get("", ())
        return f" {' '.join(changed)} " in joined.texts[""] and 2 * len(held) >= len(words)

    homes, index_of_new = {str(at): text}, reference.Index(texts)
    return reference.standing(text, homes, index_of_new, others.__contains__, is_changed)


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
    for at, one in enumerate(found.rows):
        assert reference.Standing(one.state, one.new, one.alternatives) == expected(at, old, new)
    assert len({one.state for one in found.rows}) > 2


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize(("size", "overlap"), SPLITS)
def test_as_a_slow_search_between_letters(language, size, overlap):
    """Cut between any two letters, with numbers changed, nothing differs: states, ids, others.

    A passage ends at least twelve characters away from a number that was changed.
    """
    rng, text = random.Random(size + overlap), " ".join(TEXTS[language].split())
    numbers = re.finditer(r"(?<![\d.,:-])\d{2,4}(?![\d.,:%-])", text)
    changed = [one.start() for one in numbers if rng.random() < 0.7]
    now = list(text)
    for at in changed:
        now[at] = str(int(now[at]) % 9 + 1)
    new = cut("".join(now), size, overlap)
    chunks = {str(at): one for at, one in enumerate(new)}
    slow = reference.Index(chunks, by_letters=language == "ko")
    whole = reference.Index({"": "".join(now)}, by_letters=language == "ko")
    spans = [span for span in stretches(text, 80, rng)
             if all(abs(at - edge) > 12 for at in changed for edge in span)]  # fmt: skip
    actual = [text[slice(*span)] for span in spans]
    found = reanchor(golden(*([one] for one in actual)), index(text), index(*new))
    for (start, stop), passage, row_of in zip(spans, actual, found.rows, strict=True):
        is_other = any(start < at < stop for at in changed)
        tokens = slow.tokens(passage)
        is_near = is_other and 2 * len(whole.held(tokens).get("", ())) >= len(tokens)
        answers = (lambda _, answer=one: answer for one in (is_other, is_near))
        wanted = reference.standing(passage, {}, slow, *answers)
        assert reference.Standing(row_of.state, row_of.new, row_of.alternatives) == wanted, passage
    assert {"changed"} < {one.state for one in found.rows}


def written(found):
    """Yield each row with the pieces as which it is written: text, and ids."""
    for row_of, items in zip(found.rows, found.dataset.actual, strict=True):
        several = [one.alternatives if isinstance(one, AnyOf) else [one] for one in items]
        yield row_of, [(one[0]["page_content"], [other["id"] for other in one]) for one in several]


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize(("size", "overlap"), [(40, 10), (60, 0), (100, 20), (400, 40)])
def test_verbatim_text_is_never_lost(language, size, overlap):
    """Of pages with tables, code and links, each passage is written in full, where it stands."""
    folder = Path(__file__).parents[2] / "docs" / ("ko" if language == "ko" else ".")
    pages = [(folder / f"{name}.md").read_text("utf-8") for name in ("diagnosis", "rechunking")]
    rng = random.Random(size)
    actual = [page[slice(*span)] for page in pages for span in stretches(page, 40, rng)]
    actual = [one for one in actual if sum(map(str.isalnum, one)) > 15]
    new = index(*chain(*(cut(page, size, overlap) for page in pages)))
    found = reanchor(golden(*([one] for one in actual)), index(*pages), new)
    for row_of, pieces in written(found):
        assert row_of.state in ("moved", "absorbed", "split"), row_of.text
        if row_of.state == "split":
            assert "".join(map(letters, (part for part, _ids in pieces))) == letters(row_of.text)
            assert all(letters(part) in letters(new[int(one)]["text"])
                       for part, ids in pieces for one in ids)  # fmt: skip


def letters(text):
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


@pytest.mark.parametrize(
    ("passage", "chunks", "pieces"),
    [
        # A chunk has the beginning and the end, and not what stands between.
        ("alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima alpha bravo "
         "charlie delta echo",
         ("alpha bravo charlie delta echo foxtrot golf", "hotel india juliet kilo lima"),
         [("alpha bravo charlie delta echo foxtrot golf", "0"),
          ("hotel india juliet kilo lima", "1"), ("alpha bravo charlie delta echo", "0")]),
        # Pieces of two words, and half a word, are written as well.
        (HOURS, (f"Hours. {HOURS[:14]}", HOURS[14:60], f"{HOURS[60:]}. Welcome"),
         [("The library is", "0"), (HOURS[15:60], "1"), (HOURS[60:], "2")]),
        # White space and stops at a cut may be gone.
        ("Loans last 21 days. Fines are due, then. No card is lent",
         ("Loans last 21 days", "Fines are due", "then. No card is lent"),
         [("Loans last 21 days.", "0"), ("Fines are due,", "1"), ("then. No card is lent", "2")]),
        # Of two runs of letters that meet in the passage, the chunk has each, and not both in one.
        ("print(versions.rows[1].concerns)\n청크 0, 2(0부터 셈)의 내용이",
         ("(versions.rows)\n36\n>>> print(versions.ro",
          "ersions.rows[1].concerns)\n청크 0, 2(0부터 셈)", ", 2(0부터 셈)의 내용이 다름"),
         [("print(versions.ro", "0"), ("ws[1].concerns)\n청크 0, 2(0부터 셈", "1"),
          (")의 내용이", "2")]),
    ],
)  # fmt: skip
def test_what_each_piece_is(passage, chunks, pieces):
    """A piece has the words that its chunk has, and no other ones."""
    [(row_of, found)] = written(reanchor(golden([passage]), index(passage), index(*chunks)))
    assert row_of.state == "split"
    assert [(part, *ids) for part, ids in found] == pieces


@pytest.mark.parametrize("overlap", [0, 3, 8])
@pytest.mark.parametrize(
    ("passage", "number", "other"),
    [
        (LOANS, "21", "28"),
        ("The town raised the yearly fee from 15 to 1850 euros in the autumn", "1850", "1950"),
        ("The fee for a second card is 4.50 euros for readers of the city", "4.50", "4.80"),
        ("시의회는 작년 가을에 연회비를 18,500원으로 올렸고 아무도 반대하지 않았다", "18,500",
         "19,500"),
        ("대출 기간은 21일이며 다른 사람이 예약하지 않았으면 두 번까지 연장할 수 있다", "21", "28"),
    ],
)  # fmt: skip
def test_a_changed_number_wherever_it_was_cut(passage, number, other, overlap):
    """It is changed, with the cut before it, within it or behind it."""
    now = passage.replace(number, other)
    first = now.index(other)
    for at in range(first - 3, first + len(other) + 4):
        ends = (
            f"Before it, a sentence. {now[:at]}",
            f"{now[max(at - overlap, 0) :]} And one behind.",
        )
        found = reanchor(golden([passage]), index(passage), index(*ends)).rows[0]
        assert (found.state, found.new) == ("changed", ()), at
        assert found.said is not None
        same = f"Before it. {passage[:at]}", f"{passage[max(at - overlap, 0) :]} And one behind."
        stands = reanchor(golden([passage]), index(passage), index(*same)).rows[0]
        assert stands.state in ("split", "absorbed"), at


LETTERS = str.maketrans("0123456789", "aeiourstnw")
