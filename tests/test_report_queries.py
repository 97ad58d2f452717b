"""The list of queries of a report: which there are, in which order, and how much of their texts."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

from krag_eval import EvaluationResult, OfflineRetrievalEvaluator
from krag_eval.report import query_list as lists, write_report
from krag_eval.report.query_list import Room, told_query
from krag_eval.results.diagnosis import DiagnosedItem


class Listed(HTMLParser):
    """The list of a page: per query its attributes, its numbers and its texts by class."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.queries: list[dict[str, Any]] = []
        self.options: list[str] = []
        self.columns: list[str] = []
        self._open: list[tuple[str, str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag not in ("meta", "input", "use", "path", "rect"):
            self._open.append((tag, known.get("class", "")))
        if known.get("class") == "query":
            self.queries.append({**known, "values": [], "tags": [], "question": "", "text": ""})
        elif tag == "data":
            self.queries[-1]["values"].append(known["value"])

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, kind = self._open[-1] if self._open else ("", "")
        if tag == "option":
            self.options.append(data)
        if tag == "span" and ("div", "columns line") in self._open:
            self.columns.append(data)
        if not any(kind == "query" for _, kind in self._open):
            return
        self.queries[-1]["text"] += data
        if kind == "question":
            self.queries[-1]["question"] += data
        if kind == "tag":
            self.queries[-1]["tags"].append(data)


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., Listed]:
    """Write a report and read its list of queries."""

    def written(result: EvaluationResult, **options: Any) -> Listed:
        path = tmp_path / "report.html"
        write_report(result, path, **{"intervals": False, **options})
        return Listed(path.read_text("utf-8"))

    return written


def evaluated(actual: Any, predicted: Any, k: Any = (1, 2), **options: Any) -> EvaluationResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(list(k))


def four(**options: Any) -> EvaluationResult:
    """Return a query found at rank 1, one at rank 2, one half found, one missed."""
    actual = [["a one"], ["b one"], ["c one", "c two"], ["d one"]]
    predicted = [["a one", "x"], ["x", "b one"], ["c one", "x"], ["x", "y"]]
    return evaluated(actual, predicted, queries=["found", "late", "half", "lost"], **options)


class TestQueries:
    """What the list holds."""

    def test_all_of_them_hardest_first(self, listed):
        """Recalls are 1, 1, 1/2 and 0; of the two found, the late one has the smaller nDCG."""
        page = listed(four())
        assert [one["question"] for one in page.queries] == ["lost", "half", "late", "found"]
        assert [one["data-status"] for one in page.queries] == [
            "missed", "partial", "perfect", "perfect",
        ]  # fmt: skip
        assert page.columns == ["Outcome", "Query", "Recall", "nDCG", "First rank"]

    def test_the_order_is_that_of_misses(self, listed):
        """Whatever was lost, in a random run; the others follow."""
        draw = random.Random(3)
        texts = [f"text {number}" for number in range(40)]
        actual = [draw.sample(texts, draw.randint(1, 4)) for _ in range(60)]
        predicted = [draw.sample(texts, 25) for _ in range(60)]
        made = evaluated(actual, predicted, (5, 20), queries=[f"q{n}" for n in range(60)])
        for k in (5, 20):
            shown = [one["question"] for one in listed(made, k=k).queries]
            lost = list(made.misses(k).index)
            assert shown[: len(lost)] == lost
            assert sorted(shown) == sorted(made.labels)

    def test_numbers_are_those_of_the_api(self, listed):
        """Recall, nDCG and first rank at the page's cutoff, exactly; nothing where undefined."""
        made = four()
        for k, ranks in ((1, ["", "1.0", "", "1.0"]), (2, ["", "1.0", "2.0", "1.0"])):
            table = made.per_query(k)
            found = {one["question"]: one["values"] for one in listed(made, k=k).queries}
            for label, values in found.items():
                expected = [repr(float(table[name][label])) for name in ("recall", "ndcg")]
                assert values[:2] == expected
            assert [found[one][2] for one in ("lost", "half", "late", "found")] == ranks

    def test_metrics_of_ones_own_choice(self, listed):
        """Where recall and nDCG were not evaluated, the list shows what was."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate([1], metrics=["precision"])
        assert listed(made).columns == ["Outcome", "Query", "Precision"]

    def test_without_evidence_the_lines_are_there(self, listed):
        """Outcomes and numbers, and why there is no more."""
        page = listed(replace(four(), evidence=None))
        assert [one["question"] for one in page.queries] == ["lost", "half", "late", "found"]
        assert "holds no evidence" in page.queries[0]["text"]

    def test_queries_that_do_not_count_come_last(self, listed):
        """They have no numbers."""
        made = evaluated([[], ["a"]], [["x"], ["a"]], queries=["void", "good"],
                         no_ground_truth="skip")  # fmt: skip
        good, void = listed(made).queries
        assert (good["question"], void["question"]) == ("good", "void")
        assert void["values"] == ["", "", ""]

    def test_in_korean(self, listed):
        """Columns, outcomes, filters."""
        page = listed(four(tags={"corpus": ["가", "나", None, "가"]}), language="ko")
        assert page.columns == ["결과", "질문", "재현율", "nDCG", "최초 순위"]
        assert "하나도 못 찾음" in page.queries[0]["text"]
        assert "corpus: 전체" in page.options
        assert "(없음) (1)" in page.options


class TestFilters:
    """What the queries can be filtered by."""

    def test_tags(self, listed):
        """Each value with its number of queries, numbers in their order; chips beside queries."""
        page = listed(four(tags={"corpus": ["wiki", "chat", "wiki", None], "size": [10, 9, 10, 9]}))
        assert page.options == [
            *("Outcome: all", "perfect (2)", "partial (1)", "missed (1)"),
            *("corpus: all", "chat (1)", "wiki (2)", "(none) (1)"),
            *("size: all", "9 (2)", "10 (2)"),
        ]
        by_name = {one["question"]: one for one in page.queries}
        assert by_name["found"]["tags"] == ["corpus: wiki", "size: 10"]
        assert by_name["lost"]["tags"] == ["size: 9"]
        # Positions among the options above: outcome, corpus, size.
        assert {name: one["data-facets"] for name, one in by_name.items()} == {
            "found": "0 1 1", "late": "0 0 0", "half": "1 1 1", "lost": "2 2 0",
        }  # fmt: skip

    def test_values_of_several_types(self, listed):
        """What is shown alike is one value; true is shown as no 1 is."""
        page = listed(four(tags={"kind": [True, 1, "1", 1.0]}))
        start = page.options.index("kind: all")
        # By their numbers, 1 each; then texts. The text is shown as the number is.
        assert page.options[start + 1 :] == ["1 (2)", "1.0 (1)", "True (1)"]

    def test_what_all_share_filters_nothing(self, listed):
        """Nor does what is different for each of many."""
        labels = [f"q{n}" for n in range(150)]
        actual, predicted = [["a"]] * 150, [["a"]] * 75 + [["x"]] * 75
        tags = {"same": ["one"] * 150, "id": labels, "half": [0, 1] * 75}
        made = evaluated(actual, predicted, queries=labels, tags=tags)
        page = listed(made)
        names = [one for one in page.options if one.endswith(": all")]
        assert names == ["Outcome: all", "half: all"]
        assert {len(one["data-facets"].split()) for one in page.queries} == {2}

    def test_diagnosis(self, listed):
        """The class of the item that is furthest behind; what has no words is behind nothing."""
        made = four()
        diagnosis = made.diagnose(k=2)
        causes = [(0, "found"), (1, "ranked_too_low"), (2, "no_words"), (2, "found"),
                  (3, "not_in_index")]  # fmt: skip
        items = tuple(DiagnosedItem(made.labels[at], at, 1, cause) for at, cause in causes)
        page = listed(made, diagnosis=replace(diagnosis, items=items))
        start = page.options.index("Diagnosis: all")
        assert page.options[start + 1 :] == [
            "found (2)", "ranked too low (1)", "not in the index (1)",
        ]  # fmt: skip


class TestRoom:
    """Long lists stay pages."""

    @staticmethod
    def long(n: int, word: str, **options: Any) -> EvaluationResult:
        """Return n queries with ten chunks of 200 words, every other found."""
        actual = [[" ".join(f"{word}{number}x{i}" for i in range(30))] for number in range(n)]
        other = " ".join(f"{word}{i}" for i in range(200))
        predicted = [[other] * 9 + [wanted[0] if number % 2 else other]
                     for number, wanted in enumerate(actual)]  # fmt: skip
        return evaluated(actual, predicted, (10,), matcher="coverage", **options)

    @pytest.mark.parametrize("word", ["word", "단어", '<&>"'])
    def test_a_page_stays_below_its_budget(self, tmp_path, monkeypatch, word):
        """Whatever letters take, and however they are escaped; all queries fit."""
        n = 200
        monkeypatch.setattr(lists, "BUDGET", 700_000)
        path = tmp_path / "report.html"
        made = self.long(n, word)
        made.report(path, intervals=False)
        source = path.read_text("utf-8")
        start = source.index('<div class="queries">')
        size = len(source[start : source.index("</section>", start)].encode("utf-8"))
        assert 350_000 < size < 700_000
        assert len(Listed(source).queries) == n

    def test_where_not_all_fit_the_worst_do(self, listed, monkeypatch):
        """And the page says how many, and how to see the others."""
        monkeypatch.setattr(lists, "BUDGET", 60_000)
        monkeypatch.setattr(lists, "WORST", 5)
        made = self.long(100, "word", queries=[f"q{n}" for n in range(100)])
        shown = [one["question"] for one in listed(made).queries]
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
    def parts(predicted: list[str], k: int, actual: str = "a b c d e f g h", **options: Any) -> Any:
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

    def test_they_are_in_the_page(self, listed):
        """Texts and all, for the eye that opens the line and for the search."""
        (query,) = listed(evaluated([["a"]], [["a", "unrelated"]], (1,))).queries
        assert "rank 2: beyond the cutoff, not relevant" in query["text"]
        assert "unrelated" in query["text"]
