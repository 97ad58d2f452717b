"""The list of queries of a report: which there are, in which order, and how much of their texts.

What it says of each is held by ``golden/pages.en.txt``.
"""

import random
import re
from dataclasses import replace

import pytest
from golden import pages
from golden.pages import evaluated, four

from krag_eval.report import query_list as lists, write_report
from krag_eval.report.query_list import Room, told_query


@pytest.fixture
def listed(tmp_path):
    """Write a report, and return what its list says of each query: question, numbers, text."""

    def written(result, **options):
        path = tmp_path / "report.html"
        with pages.without_pictures():
            write_report(result, path, **{"intervals": False, **options})
        parts = path.read_text("utf-8").split('<details class="query"')[1:]
        return [
            {
                "question": re.findall(r'class="question"[^>]*>(.*?)</span>', part)[0],
                "values": re.findall(r'<data value="(.*?)"', part),
                "facets": re.findall(r'data-facets="(.*?)"', part)[0].split(),
            }
            for part in parts
        ]

    return written


def test_the_order_is_that_of_misses(listed):
    """Whatever was lost, in a random run; the others follow."""
    draw = random.Random(3)
    texts = [f"text {number}" for number in range(40)]
    actual = [draw.sample(texts, draw.randint(1, 4)) for _ in range(60)]
    predicted = [draw.sample(texts, 25) for _ in range(60)]
    made = evaluated(actual, predicted, (5, 20), queries=[f"q{n}" for n in range(60)])
    for k in (5, 20):
        shown = [one["question"] for one in listed(made, k=k)]
        lost = list(made.misses(k).index)
        assert shown[: len(lost)] == lost
        assert sorted(shown) == sorted(made.labels)


def test_numbers_are_those_of_the_api(listed):
    """Recall, nDCG and first rank at the page's cutoff, exactly; nothing where undefined.

    Recalls at 2 are 1, 1, 1/2 and 0; of the two found, the late one has the smaller nDCG.
    """
    made = four()
    for k, ranks in ((1, ["", "1.0", "", "1.0"]), (2, ["", "1.0", "2.0", "1.0"])):
        table = made.per_query(k)
        found = {one["question"]: one["values"] for one in listed(made, k=k)}
        for label, values in found.items():
            expected = [repr(float(table[name][label])) for name in ("recall", "ndcg")]
            assert values[:2] == expected
        assert [found[one][2] for one in ("lost", "half", "late", "found")] == ranks
    assert list(found) == ["lost", "half", "late", "found"]


def test_queries_that_do_not_count_come_last(listed):
    """They have no numbers; without evidence, all lines are there still."""
    made = evaluated([[], ["a"]], [["x"], ["a"]], queries=["void", "good"], no_ground_truth="skip")
    good, void = listed(replace(made, evidence=None))
    assert (good["question"], void["question"]) == ("good", "void")
    assert void["values"] == ["", "", ""]


def test_what_all_share_filters_nothing(listed):
    """Nor does what is different for each of many: outcome and halves are left."""
    labels = [f"q{n}" for n in range(150)]
    actual, predicted = [["a"]] * 150, [["a"]] * 75 + [["x"]] * 75
    tags = {"same": ["one"] * 150, "id": labels, "half": [0, 1] * 75}
    made = evaluated(actual, predicted, queries=labels, tags=tags)
    assert {len(one["facets"]) for one in listed(made)} == {2}


class TestRoom:
    """Long lists stay pages."""

    @staticmethod
    def long(n, word, **options):
        """Return n queries with ten chunks of 200 words, every other found."""
        actual = [[" ".join(f"{word}{number}x{i}" for i in range(30))] for number in range(n)]
        other = " ".join(f"{word}{i}" for i in range(200))
        predicted = [[other] * 9 + [wanted[0] if number % 2 else other]
                     for number, wanted in enumerate(actual)]  # fmt: skip
        return evaluated(actual, predicted, (10,), matcher="coverage", **options)

    @pytest.mark.parametrize("word", ["word", "단어", '<&>"'])
    def test_a_page_stays_below_its_budget(self, monkeypatch, word):
        """Whatever letters take, and however they are escaped; all queries fit."""
        monkeypatch.setattr(lists, "BUDGET", 700_000)
        queries = lists.query_list(self.long(200, word), 10, None)["queries"]
        assert 350_000 < len("".join(queries).encode("utf-8")) < 700_000
        assert len(queries) == 200

    def test_where_not_all_fit_the_worst_do(self, listed, monkeypatch):
        """And the page says how many, and how to see the others."""
        monkeypatch.setattr(lists, "BUDGET", 60_000)
        monkeypatch.setattr(lists, "WORST", 5)
        made = self.long(100, "word", queries=[f"q{n}" for n in range(100)])
        shown = [one["question"] for one in listed(made)]
        assert 10 < len(shown) < 100
        assert shown == list(made.misses(10).index[: len(shown)])
        notes = lists.query_list(made, 10, None)["query_notes"]
        assert any(f"{len(shown)} of 100 queries" in note for note in notes)

    def test_the_worst_have_more_text(self, listed, monkeypatch):
        """And a text that matches has more than one that does not."""
        monkeypatch.setattr(lists, "BUDGET", 300_000)
        monkeypatch.setattr(lists, "WORST", 5)
        queries = lists.query_list(self.long(90, "word"), 10, None)["queries"]
        texts = [re.findall(r'<div dir="auto">(.*?)</div>', one) for one in queries]
        lengths = [len(of_query[1]) for of_query in texts]
        assert min(lengths[:5]) > 2 * max(lengths[5:])
        assert len(texts[-1][-1]) > 2 * lengths[-1]


def test_what_documents_are_known_by_is_shown(listed):
    """Id and source of each document and each alternative, beside its text."""
    explanation = four().explain("half", k=2)
    about = (("id", "doc7"), ("source", "guide.pdf"))
    changed = replace(
        explanation,
        documents=tuple(replace(one, about=about) for one in explanation.documents),
        items=tuple(replace(one, about=(about,)) for one in explanation.items),
    )
    told = told_query(changed)
    assert [row.about for row in told.predicted] == [[about], [about]]
    assert [row.about for row in told.ground_truth] == [[about], [about]]


def test_with_little_room_the_first_documents_are_shown_and_those_that_match():
    """Of six, those at ranks 1 and 2, and 5, which matches; the others are counted."""
    made = evaluated([["a one"]], [["u", "v", "x", "y", "a one", "z"]], (6,))
    told = told_query(made.explain(0), Room(100, 100, 100, n_rest=2))
    assert [row.number for row in told.predicted] == [1, 2, 5]
    assert told.more_documents == 3


class TestFolded:
    """Documents beyond the cutoff that no outcome rests on."""

    @staticmethod
    def parts(predicted, k, actual="a b c d e f g h", **options):
        made = evaluated([[actual]], [predicted], (k,), matcher="coverage", **options)
        told = told_query(made.explain(0, k=k))
        assert [row for part in told.parts for row in part.rows] == told.predicted
        return [([row.number for row in part.rows], part.folded) for part in told.parts]

    def test_each_stretch_of_them_is_a_line(self):
        """Rank 5 has the item, though beyond the cutoff, so it stands between two stretches."""
        predicted = ["u", "v", "w", "x", "a b c d e f g h", "y"]
        assert self.parts(predicted, 2) == [
            ([1, 2], ""),
            ([3, 4], "ranks 3 to 4: beyond the cutoff, not relevant"),
            ([5], ""),
            ([6], "rank 6: beyond the cutoff, not relevant"),
        ]

    def test_within_the_cutoff_nothing_is_folded(self):
        """However little it has in common."""
        assert self.parts(["u", "v", "w"], 3) == [([1, 2, 3], "")]

    def test_what_an_outcome_names_is_open(self):
        """Rank 4 holds a run of five words, rank 3 some words: neither is a match."""
        assert self.parts(["u", "v", "w", "a b c d e y", "x"], 1)[-2:] == [
            ([4], ""), ([5], "rank 5: beyond the cutoff, not relevant"),
        ]  # fmt: skip
        # "3 of its 8 different words occur in rank 3"
        assert self.parts(["u", "v", "a x c y e", "z"], 1) == [
            ([1], ""), ([2], "rank 2: beyond the cutoff, not relevant"),
            ([3], ""), ([4], "rank 4: beyond the cutoff, not relevant"),
        ]  # fmt: skip
