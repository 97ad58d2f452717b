"""The page of a comparison: what it says, its numbers, both lists of each changed query."""

from __future__ import annotations

import html
import math
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

from test_report import (
    HOSTILE,
    QUERIES,
    Page,
    check_harmless,
    compared,
    evaluated,
    in_pieces,
    result,
)

from krag_eval import (
    Comparison,
    EvaluationResult,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    compare,
    evaluate_retrievers,
)
from krag_eval._language import speaking
from krag_eval.errors import Refusal
from krag_eval.presenting.comparison import told_detectable
from krag_eval.presenting.numbers import p_value, span
from krag_eval.report import write_report

HALVES = ["a b c d e", "f g h i j"]
# A key of an average, as the API spells it.
KEY = re.compile(r"\b[a-z]\w*@(?:\d+[wct]?|all)\b")


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Page]:
    """Write the page of a comparison and read it."""

    def written(comparison: Comparison, **options: Any) -> Page:
        path = tmp_path / "report.html"
        write_report(comparison, path, **options)
        return Page(path.read_text("utf-8"))

    return written


def quietly_compared(systems: dict[str, EvaluationResult], metric: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        return compare(systems, metric, **{"n_resamples": 200, **options})


def asked(predicted: list[Any], **options: Any) -> EvaluationResult:
    """Evaluate one question whose answer is "nine"."""
    return evaluated([["nine"]], [predicted], queries=["When?"], **{"k": [2], **options})


def finding(n: int, **options: Any) -> EvaluationResult:
    """Evaluate 40 queries of which the first n find what they want."""
    actual = [[f"d{i}"] for i in range(40)]
    predicted = [truth if i < n else ["x"] for i, truth in enumerate(actual)]
    return evaluated(actual, predicted, k=[1, 3], **options)


def tables(written: Page, kind: str) -> list[list[list[str]]]:
    """Return the cells of the page's tables of a kind, row by row."""
    found = re.findall(rf'<table class="{kind}">(.*?)</table>', written.source, re.DOTALL)
    return [
        [
            [_text(cell) for cell in re.findall(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
            for row in re.findall(r"<tr\b[^>]*>(.*?)</tr>", table, re.DOTALL)
        ]
        for table in found
    ]


def _text(source: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", source)).split())


def sides(written: Page) -> list[str]:
    """Return the source of each list, two for every query."""
    return re.findall(r'<div class="side">(.*?)\n</div>', written.source, re.DOTALL)


def moves(source: str) -> list[str]:
    """Return what the page says of ranks that changed."""
    return [_text(one) for one in re.findall(r'<span class="moved">(.*?)</span>', source)]


def shown(value: float) -> str:
    """Write a number as tables do."""
    return "–" if math.isnan(value) else f"{value:.4f}"


class TestComparison:
    """What is shown, how surely."""

    def test_sentences_table_and_picture(self, page):
        """What is shown and what is not, in words, numbers and a forest."""
        written = page(compared())
        assert "No difference shown between a and b on nDCG at k = 2" in written
        assert "2 / 1 / 0" in written.of("td")
        assert written.of("h1") == ["Comparison of retrievers"]

    def test_a_difference_that_is_shown(self, page):
        """Who is better, by how much, how surely."""
        actual = [[f"d{i}"] for i in range(40)]
        worse = [["x"]] * 20 + actual[20:]
        systems = {"old": evaluated(actual, worse, k=1), "new": evaluated(actual, actual, k=1)}
        better = compare(systems, "mrr@1", n_resamples=1000)
        written = page(better)
        assert "new is better than old on MRR at k = 1 by 0.500 (1.000 against 0.500" in written
        korean = page(better, language="ko").of("li")[0]
        assert korean.startswith(
            "MRR, k = 1 기준으로 new 쪽이 old보다 0.500만큼 좋습니다(1.000 대 0.500"
        )

    def test_systems_are_named(self, page):
        """Headings, columns and explanations say which system, never a and b."""
        written = page(quietly_compared({"bm25": finding(20), "dense": finding(30)}, "mrr@1"))
        ((header, row),) = tables(written, "numbers cards")
        assert header[1:4] == ["bm25", "dense", "dense − bm25"]
        assert header[-1] == "dense: wins / ties / losses"
        assert row[1:4] + row[-1:] == ["0.5000", "0.7500", "0.2500", "10 / 30 / 0"]
        assert "dense − bm25" in written.of("strong")
        assert not re.search(r"\bb − a\b|\bof b\b|\bb replaces\b", written.source)

    def test_no_key_stands_beside_a_label(self, page):
        """Averages have names; their keys are for the API (pictures are tested with plotting)."""
        systems = {"a": in_pieces(), "b": in_pieces(HALVES[::-1]), "c": in_pieces()}
        at = ["mrr@2", "macro_recall@20w", "micro_recall@2", "mean_rank@2"]
        for language in ("en", "ko"):
            written = page(quietly_compared(systems, at), language=language)
            drawn = {"text", "tspan", "title", "style"}
            said = [text for place, text in written.texts if place not in drawn]
            assert [text for text in said if KEY.search(text)] == []
        assert "재현율(micro), k = 2" in written.of("th")
        assert "평균 순위(낮을수록 좋음), k = 2" in written.of("th")

    def test_signature_and_sampling(self, page):
        """All that the numbers depend on, the seed included."""
        written = page(compared())
        assert {"matcher", "n_resamples", "seed", "200"} <= set(written.of("td"))

    def test_in_korean(self, page):
        """Headings, sentences and how to read it."""
        written = page(compared(), language="ko")
        assert written.of("h1") == ["검색기 비교 보고서"]
        assert "차이가 확인되지 않았습니다" in written
        assert "How to read" not in written.source

    def test_what_was_left_out_is_said(self, page):
        """How many queries of which system, whatever it is called; nothing where nothing was."""

        def of(first: int, last: int) -> EvaluationResult:
            lists = [[f"passage {i}"] for i in range(first, last)]
            labels = [f"q{i}" for i in range(first, last)]
            return OfflineRetrievalEvaluator(lists, lists, queries=labels).evaluate(2)

        systems = {"<b>old</b>": of(0, 40), "new": of(5, 47)}
        written = page(compare(systems, "mrr@2", on="common", n_resamples=100))
        said = "Compared on the 35 queries that all have; left out: 5 of <b>old</b> ("
        assert any(one.startswith(said) for one in written.of("p"))
        assert "Left out" not in page(compared())

    @pytest.mark.parametrize("language", ["en", "ko"])
    @pytest.mark.parametrize("clusters", [None, "source"])
    def test_what_clusters_do_and_what_could_be_shown_is_said(self, page, language, clusters):
        """In the sentences of the summary; the tag stands among the settings."""
        sources = [f"handbook {i // 4}" for i in range(80)]

        def of(misses: range) -> EvaluationResult:
            lists = [["x"] if i in misses else ["a"] for i in range(80)]
            tags = {"source": sources}
            return OfflineRetrievalEvaluator([["a"]] * 80, lists, tags=tags).evaluate(2)

        systems = {"old": of(range(8)), "new": of(range(4, 14))}
        comparison = compare(systems, "mrr@2", clusters=clusters, n_resamples=100)
        written = page(comparison, language=language)
        *_, clustered = comparison.summary(language).split("\n")
        assert clustered in written.of("p")
        with speaking(language):
            (detectable,) = told_detectable(comparison.differences[0])
        assert comparison.summary(language).split("\n")[0].endswith(f" {detectable}")
        assert f" {detectable}" in written
        assert ("clusters" in written.of("td")) == (clusters is not None)


class TestSystems:
    """Two systems have a table of their values, more a leaderboard, and both have pictures."""

    def test_leaderboard(self, page):
        """Numbers, intervals and order are those of the API; the best are marked."""
        systems = {"low": finding(10), "high": finding(30), "also high": finding(30)}
        several = quietly_compared(systems, ["mrr@1", "macro_recall@3"])
        written = page(several)
        assert written.of("h2")[0] == "Leaderboard"
        ((header, *rows),) = tables(written, "numbers cards board")
        assert header == ["System", "MRR at k = 1", "Macro recall at k = 3"]
        expected = []
        for name, row in several.leaderboard.iterrows():
            cells = [name]
            for metric in several.metrics:
                low, high = shown(row[f"{metric}_low"]), shown(row[f"{metric}_high"])
                best = " best" if row[f"{metric}_best"] else ""
                cells.append(f"{shown(row[metric])}{best} {low} to {high}")
            expected.append(cells)
        assert rows == expected
        assert [row[0] for row in rows] == ["high", "also high", "low"]  # .75, .75 and .25
        assert [row[1][:10] for row in rows] == ["0.7500 bes", "0.7500 bes", "0.2500 0.1"]

    def test_two_systems(self, page):
        """Both values with their intervals, in the order given, before the verdict."""
        written = page(quietly_compared({"low": finding(10), "high": finding(30)}, "mrr@1"))
        assert written.of("h2")[:2] == ["Both systems", "What is shown"]
        ((_, *rows),) = tables(written, "numbers cards board")
        assert [row[0] for row in rows] == ["low", "high"]
        assert "best" not in " ".join(row[1] for row in rows)

    def test_all_differences_are_those_of_the_api(self, page):
        """A table for each pair, a row for each metric."""
        systems = {"low": finding(10), "high": finding(30), "middle": finding(20)}
        several = quietly_compared(systems, ["mrr@1", "recall@3"])
        found = [row[1:] for _, *rows in tables(page(several), "numbers cards") for row in rows]
        assert found == [
            [
                shown(row.value_a),
                shown(row.value_b),
                shown(row.difference),
                span(row.ci_low, row.ci_high),
                *map(p_value, (row.p_permutation, row.p_holm, row.p_t)),
                shown(row.effect_size),
                f"{row.wins} / {row.ties} / {row.losses}",
            ]
            for row in several.table.itertuples()
        ]  # fmt: skip

    def test_a_baseline(self, page):
        """Only its pairs are shown, and what changed in them; the page says so."""
        systems = {"a": finding(10), "<b>": finding(20), "c": finding(30)}
        written = page(quietly_compared(systems, "mrr@1", baseline="<b>"))
        headings = [one for one in written.of("h3") if one.startswith("MRR")]
        assert headings == ["MRR at k = 1: from <b> to a", "MRR at k = 1: from <b> to c"]
        assert any(one.startswith("The others are compared with <b>, the baseline.")
                   for one in written.of("p"))  # fmt: skip
        assert "the baseline" not in page(quietly_compared(systems, "mrr@1"))

    def test_pictures_against_k(self, page):
        """One for each average compared at a k, where there are several."""
        systems = {"low": finding(10), "high": finding(30)}
        titles = page(quietly_compared(systems, ["mrr@1", "mrr@3", "recall@3"])).of("title")
        assert titles[2:] == ["MRR against k (40 queries)", "Macro recall against k (40 queries)"]
        at_one_k = {"a": asked(["nine"]), "b": asked(["ten"])}
        assert len(page(quietly_compared(at_one_k, "mrr@2")).of("title")) == 2

    def test_a_picture_against_latency(self, page):
        """Where krag_eval asked the retrievers; the others have none."""
        rows = [{"question": f"{i}?", "actual": [f"d{i}"]} for i in range(40)]

        def slow(question: str) -> list[str]:
            time.sleep(0.001)
            return [f"d{question[:-1]}"]

        systems = {"slow": slow, "first": lambda question: ["d0"]}
        asking = evaluate_retrievers(systems, rows, k=[1, 3], n_resamples=100)
        assert "nDCG at k = 3 against latency (40 queries)" in page(asking).of("title")
        assert not any("latency" in one for one in page(compared()).of("title"))

    def test_equal_budgets(self, page):
        """One picture for each average compared at a budget, token recall where none was."""
        systems = {"a": in_pieces(), "b": in_pieces(HALVES[::-1])}
        at_budgets = quietly_compared(systems, ["ndcg@20w", "mrr@5w", "mrr@20w"])
        at_k = quietly_compared(systems, "mrr@2")
        titles = page(at_budgets).of("title")
        assert [one.partition(" against")[0] for one in titles[2:]] == ["nDCG", "MRR"]
        titles = page(at_k).of("title")
        assert titles[2:] == ["Macro token recall against the budget (1 query)"]
        assert "같은 예산에서 비교" in page(at_k, language="ko").of("h2")
        assert "At equal budgets" not in page(compared())

    def test_many_systems(self, page):
        """More than one picture can hold are drawn in several."""
        systems = {f"system {number}": in_pieces() for number in range(9)}
        written = page(quietly_compared(systems, "mrr@2"), n_queries=0)
        assert sum("against the budget" in one for one in written.of("title")) == 2
        ids = [known["id"] for _, known in written.elements if known.get("id")]
        assert len(ids) == len(set(ids))


class TestChangedQueries:
    """Both lists side by side, and what moved."""

    def test_most_changed_first(self, page):
        """With their values; 0 leaves the section out."""
        written = page(compared(), n_queries=1)
        assert "nDCG at k = 2: from a to b" in written.of("h3")
        # Neither "nine" nor "ten" is lost in b; "no food" is what a does not find at all.
        assert [text for place, text in written.texts if place == "span" and "?" in text] == [
            "May I eat here?"
        ]
        assert "+1.000" in written.of("strong")
        without = page(compared(), n_queries=0)
        assert "Queries that changed most" not in without
        assert "side by side" not in without

    def test_a_rank_that_changed(self, page):
        """The passage stands at rank 3 of the one and at rank 1 of the other; x is in both."""
        systems = {"old": asked(["x", "y", "nine"]), "new": asked(["nine", "x", "z"])}
        written = page(quietly_compared(systems, "macro_recall@2"))
        assert moves(written.source.partition('<div class="sides">')[0]) == ["rank 3 → 1"]
        old, new = sides(written)
        assert [_text(one) for one in re.findall(r"<h4>.*?</h4>", old + new)] == ["old", "new"]
        assert moves(old) == ["in both lists"]
        assert moves(new) == ["rank 3 → 1", "in both lists"]
        # Within the cutoff alone, and what is irrelevant in both is folded.
        assert [re.findall(r'<li class="(\w+)" value="(\d)">', one) for one in (old, new)] == [
            [("faint", "1"), ("faint", "2")],
            [("good", "1"), ("faint", "2")],
        ]
        assert [one.count('<details class="folded">') for one in (old, new)] == [1, 1]
        for said in ("old : missed; found at rank 3, beyond the cutoff", "new : found at rank 1"):
            assert said in _text(written.source)

    def test_new_and_lost(self, page):
        """A passage that only one of them has."""
        systems = {"old": asked(["nine", "x"]), "new": asked(["y", "x"])}
        there, back = (
            page(quietly_compared(both, "macro_recall@2"))
            for both in (systems, dict(reversed(systems.items())))
        )
        assert moves(there.source)[:2] == ["lost, was at rank 1"] * 2
        assert moves(back.source)[0] == "new, at rank 1"
        assert moves(sides(back)[1])[0] == "new, at rank 1"

    def test_documents_are_told_by_their_ids(self, page):
        """Where both have ids, whatever their texts; otherwise by their texts."""

        def document(text: str, one: str | None) -> dict[str, Any]:
            return {"page_content": text, "id": one, "metadata": {"source": "guide.pdf"}}

        other = document("closed", "x")
        old = asked([other, document("opens at nine", "d7")], matcher="contains")
        for text, one, moved in (
            ("nine sharp", "d7", ["rank 2 → 1"]),  # edited
            ("opens at nine", "d8", ["new, at rank 1"]),  # another chunk of the same text
            ("opens at nine", None, ["rank 2 → 1"]),
        ):
            new = asked([document(text, one)], matcher="contains")
            written = page(quietly_compared({"old": old, "new": new}, "mrr@2"))
            assert moves(sides(written)[1]) == moved
        assert "id: d7 · source: guide.pdf" in written.of("p")

    def test_matching_words_are_marked(self, page):
        """In the ground truth and in what found it."""
        systems = {
            "old": asked(["shut"], matcher="contains"),
            "new": asked(["it opens at nine sharp"], matcher="contains"),
        }
        written = page(quietly_compared(systems, "mrr@2"))
        assert written.of("mark") == ["nine", "nine"]

    def test_queries_that_share_a_label(self, page):
        """Each is shown as itself."""
        actual, labels = [["nine"], ["ten"]], ["When?", "When?"]
        old = evaluated(actual, [["x"], ["ten"]], queries=labels)
        new = evaluated(actual, [["nine"], ["ten"]], queries=labels)
        written = page(quietly_compared({"old": old, "new": new}, "mrr@2"))
        assert len(sides(written)) == 2
        assert "ten" not in written.of("div")

    def test_queries_without_ground_truth_come_between(self, page):
        """What counts is a part of all queries."""
        actual = [[], ["nine"]]
        options: Any = {"queries": QUERIES[:2], "no_ground_truth": "skip"}
        old = evaluated(actual, [["a"], ["x"]], **options)
        new = evaluated(actual, [["b"], ["nine"]], **options)
        written = page(quietly_compared({"old": old, "new": new}, "mrr@2"))
        assert [_text(one) for one in sides(written)] == [
            "old not relevant x",
            "new first to cover item 1 · similarity 1.0000 new, at rank 1 nine",
        ]

    def test_without_texts(self, page, tmp_path):
        """Ranks alone, and the page says so."""
        systems = {"old": asked(["x", "y", "nine"]), "new": asked(["nine", "x", "z"])}
        for name, one in systems.items():
            one.to_json(tmp_path / f"{name}.json")
            systems[name] = EvaluationResult.from_json(tmp_path / f"{name}.json")
        written = page(quietly_compared(systems, "mrr@2"))
        assert any(one.startswith("The texts were not kept") for one in written.of("p"))
        assert moves(written.source) == ["rank 3 → 1"]  # of the item, which both are known to want
        assert "(text not kept)" not in written

    def test_queries_in_another_order(self, page):
        """The lists are those of the same question, wherever it stood."""
        actual, labels = [["nine"], ["ten"]], ["a?", "b?"]
        old = evaluated(actual, [["x", "nine"], ["ten"]], queries=labels)
        new = evaluated(actual[::-1], [["ten"], ["nine"]], queries=labels[::-1])
        written = page(quietly_compared({"old": old, "new": new}, "mrr@2"))
        assert moves(written.source)[0] == "rank 2 → 1"
        assert not any("is not known query by query" in one for one in written.of("p"))

    def test_without_evidence(self, page):
        """Values alone, and the page says of which system."""
        actual, labels = [["nine"], ["ten"]], ["a?", "b?"]
        old = evaluated(actual, [["x"], ["ten"]], queries=labels)
        new = replace(evaluated(actual, [["nine"], ["ten"]], queries=labels), evidence=None)
        written = page(quietly_compared({"old": old, "new": new}, "mrr@2"))
        assert any(one.startswith("What new retrieved is not known") for one in written.of("p"))
        assert sides(written) == []
        assert "+1.000" in written.of("strong")

    def test_ground_truth_in_another_order(self, page):
        """An item is told by its text: "ten" is found by both, "nine" by the second alone."""
        old = evaluated([["nine", "ten"]], [["ten", "x"]], queries=["When?"], k=[2])
        new = evaluated([["ten", "nine"]], [["nine", "ten"]], queries=["When?"], k=[2])
        written = page(quietly_compared({"old": old, "new": new}, "macro_recall@2"))
        items = written.source.partition("<h4>")[2].partition('<div class="sides">')[0]
        assert [_text(one) for one in re.findall(r"<li.*?</li>", items, re.DOTALL)] == [
            "rank 1 → 2 old : found at rank 1 new : found at rank 2 ten",
            "new, at rank 1 old : missed; no predicted document has the same text "
            "new : found at rank 1 nine",
        ]
        # In both lists, items have the numbers above.
        said = re.findall(r"first to cover item \d", "".join(sides(written)))
        assert said == [f"first to cover item {number}" for number in (1, 2, 1)]

    def test_a_retriever_that_failed(self, page):
        """What it said stands where its list would."""

        def broken(question: str) -> list[str]:
            raise TimeoutError("no answer from <b>there</b>")

        rows = [{"question": "When?", "actual": ["nine"]}]
        systems = {"broken": broken, "sound": lambda question: ["nine"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KragEvalWarning)
            asking = evaluate_retrievers(systems, rows, 1, on_error="record", n_resamples=100)
        said = "Asking the retriever failed: TimeoutError: no answer from <b>there</b>"
        assert said in page(asking).of("p")

    def test_nothing_retrieved(self, page):
        """An empty list is said to be empty."""
        systems = {"old": asked([]), "new": asked(["nine"])}
        written = page(quietly_compared(systems, "mrr@2"))
        assert "Nothing was retrieved within the cutoff." in written.of("p")

    @pytest.mark.parametrize("language", ["en", "ko"])
    @pytest.mark.parametrize("without", ["dense", "bm25 and dense"])
    def test_where_a_metric_is_undefined(self, page, language, without):
        """Of one system or of both: where nothing is found, there is no rank."""
        wanted, nothing = [["a"]] * 3, [["x"]] * 3
        systems = {
            name: evaluated(wanted, nothing if name in without else wanted, k=[1], metrics=["rank"])
            for name in ("bm25", "dense")
        }
        written = page(quietly_compared(systems, "mean_rank@1"), language=language)
        both = {"en": " and ", "ko": ", "}[language]
        told = without.replace(" and ", both)
        assert any(one.endswith((f" for {told}.", f": {told}.")) for one in written.of("li"))

    def test_nothing_changed(self, page):
        """A comparison of the same twice."""
        same = quietly_compared({"a": result(), "b": result()}, "mrr@2")
        assert "No query changed." in page(same)

    def test_size(self, page):
        """Three systems, ten changed queries for each pair, ten chunks of 200 words: under 1 MB."""

        def chunk(query: int, number: int) -> str:
            return " ".join(f"word{query}x{number}y{i}" for i in range(200))

        actual = [[chunk(i, 0)] for i in range(40)]
        systems = {}
        for shift, name in enumerate(("bm25", "dense", "hybrid")):
            lists = [[chunk(i, n + 20 * shift) for n in range(9)] for i in range(40)]
            lists = [[*one[:shift], *truth, *one[shift:]]
                     for one, truth in zip(lists, actual, strict=True)]  # fmt: skip
            systems[name] = evaluated(actual, lists, k=[10])
        written = page(quietly_compared(systems, "mrr@10"))
        assert len(sides(written)) == 3 * 10 * 2
        assert len(written.source.encode()) < 1_000_000


class TestSlices:
    """A section for each tag asked for."""

    TAGS = {"corpus": ["wiki"] * 15 + ["chat"] * 20 + ["<i>few</i>"] * 5}  # noqa: RUF012

    def compared(self) -> Comparison:
        systems = {"bm25": finding(10, tags=self.TAGS), "dense": finding(30, tags=self.TAGS)}
        return quietly_compared(systems, "mrr@1")

    def test_numbers_are_those_of_the_api(self, page):
        """Counts alone where there are few queries."""
        comparison = self.compared()
        written = page(comparison, by=("corpus",))
        assert "By corpus" in written.of("h2")
        _, (header, *rows) = tables(written, "numbers cards")
        assert header[:5] == ["Slice", "Queries", "bm25", "dense", "dense − bm25"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KragEvalWarning)
            expected = comparison.by("corpus").table
        assert [row[:5] for row in rows] == [
            [row.slice, str(row.n), shown(row.value_a), shown(row.value_b), shown(row.difference)]
            for row in expected.itertuples()
        ]
        # wiki holds queries 0 to 14, of which bm25 finds 10 and dense all.
        by_name = {row[0]: row for row in rows}
        assert by_name["wiki"][1:5] == ["15", "0.6667", "1.0000", "0.3333"]
        assert by_name["wiki"][-1] == "5 / 10 / 0"
        assert by_name["<i>few</i>"][1:] == ["5", "–", "–", "–", "–", "–", "–"]

    def test_several_tags_and_korean(self, page):
        """One name alone is a tag too; nothing is warned of that the page says itself."""
        written = page(self.compared(), by=("corpus", "items"))
        assert written.of("h2").count("By number of ground-truth items") == 1
        korean = page(self.compared(), by="corpus", language="ko")
        assert "corpus별" in korean.of("h2")
        noted = [one for _, one in korean.elements if one.get("class") == "remark"]
        assert {one.get("lang") for one in noted} == {None}
        assert "By corpus" not in page(self.compared())

    def test_ids_of_pictures(self, page):
        """They are unique, also where tags begin alike."""
        tags = {f"question {one}": self.TAGS["corpus"] for one in ("topic", "type")}
        systems = {"bm25": finding(10, tags=tags), "dense": finding(30, tags=tags)}
        written = page(quietly_compared(systems, "mrr@1"), by=tags)
        ids = [known["id"] for _, known in written.elements if known.get("id")]
        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("by", [5, [5], ("",), "no such tag"])
    def test_refusals(self, tmp_path, by):
        """Tags there are."""
        with pytest.raises(Refusal):
            write_report(self.compared(), tmp_path / "report.html", by=by)
        assert not list(tmp_path.iterdir())


class TestHostile:
    """Names, questions, texts, ids and tags are shown, and nothing else."""

    def test_everything_at_once(self, page):
        """Nothing runs, nothing breaks out, what acts is spelled out."""
        texts = [*HOSTILE, *(f"plain {i}" for i in range(29))]
        documents = [
            {"page_content": text, "id": text, "metadata": {"source": text}} for text in texts
        ]
        actual = [[one] for one in documents]
        tags = {HOSTILE[0]: [HOSTILE[1] if i < 20 else HOSTILE[4] for i in range(len(texts))]}
        old = evaluated(actual, [[documents[1]]] * len(texts), queries=texts, tags=tags, k=[1, 2])
        new = evaluated(
            actual, [[documents[1], *one] for one in actual], queries=texts, tags=tags, k=[1, 2]
        )
        systems = {HOSTILE[0]: old, "\u202e" + "x" * 5000: new, HOSTILE[1]: new}
        written = page(
            quietly_compared(systems, "macro_recall@2"), n_queries=40, by=(HOSTILE[0],),
            title=HOSTILE[2],
        )  # fmt: skip
        check_harmless(written)
        for text in HOSTILE[:6]:
            assert text in written
        assert len(written.source) < 2_000_000
