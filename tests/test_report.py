"""Reports: what the page says, and that no text can inject anything into it."""

from __future__ import annotations

import base64
import hashlib
import math
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

import krag_eval
from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator, compare
from krag_eval.errors import InvalidInput, InvalidType, Refusal
from krag_eval.presenting.numbers import p_value
from krag_eval.report import write_report

QUERIES = ["When is it open?", "May I eat here?", "Who can join?"]
ACTUAL = [["nine", "ten"], ["no food"], ["everyone"]]
PREDICTED = [["nine", "five"], ["no drinks"], ["everyone"]]
MICRO = "Micro averages, where all items or documents weigh the same"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """A page, read: its elements, their attributes, its text by element."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def __contains__(self, text: str) -> bool:
        return any(text in data for _, data in self.texts)

    def of(self, tag: str) -> list[str]:
        return [data for place, data in self.texts if place == tag]

    @property
    def queries(self) -> list[dict[str, str | None]]:
        return [known for _, known in self.elements if known.get("class") == "query"]

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Page]:
    """Write a report and read it."""

    def written(thing: Any, write: Callable[..., None] = write_report, **options: Any) -> Page:
        path = tmp_path / "report.html"
        write(thing, path, **options)
        return Page(path.read_text("utf-8"))

    return written


def evaluated(
    actual: list[Any] = ACTUAL, predicted: list[Any] = PREDICTED, **options: Any
) -> EvaluationResult:
    k, metrics = options.pop("k", [1, 2]), options.pop("metrics", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        evaluator = OfflineRetrievalEvaluator(actual, predicted, **options)
        return evaluator.evaluate(k=k, metrics=metrics)


def figures(written: Page) -> dict[str, str]:
    """Return the figures up front: name and cutoff -> value as written."""
    cards = written.source.split('<div class="card">')[1:]
    found = [re.search(r'name">(.*?)<.*?figure">(.*?)<', one, re.DOTALL) for one in cards]
    return {one[1]: one[2] for one in found if one}


def result(**options: Any) -> EvaluationResult:
    return evaluated(queries=QUERIES, **options)


def compared() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        better = evaluated(ACTUAL, ACTUAL, queries=QUERIES)
        return compare({"a": result(), "b": better}, ["ndcg@2", "mean_rank@2"], n_resamples=200)


class TestResult:
    """The page of a result."""

    def test_it_begins_with_what_was_found(self, page):
        """Of three queries, recalls 1/2, 0 and 1: half, and one query got everything."""
        (summary,) = [text for text in page(result()).of("p") if text.startswith("At k = 2")]
        assert "50 % of what should come back did (macro recall 0.500, 95 % interval" in summary
        assert summary.endswith("1 of 3 queries got everything.")

    def test_metrics_at_every_cutoff(self, page):
        """Each value to four digits, as the result has it, with its interval."""
        written = page(result())
        cells = written.of("td")
        for value in result().to_dict().values():
            assert f"{value:.4f}" in cells
        intervals = [text for text in written.of("small") if " to " in text]
        # Found rate, which says the same as success, is in no table.
        assert len(intervals) == len(result().to_dict()) - len(result().k)

    def test_one_label_per_metric(self, page):
        """What people call it, and never the key beside it."""
        written = page(result())
        assert "Macro recall" in written.of("th")
        assert "macro_recall" not in written.source

    def test_micro_averages_are_folded(self, page):
        """They stand in a table of their own; a micro average alone is no repetition."""
        written = page(result())
        rows = written.of("th")
        assert rows.index("nDCG") < rows.index("Micro recall")
        folded = written.texts.index(("summary", MICRO))
        told = [text for _, text in written.texts[folded + 1 :]]
        assert "Micro recall" in told
        assert "Micro recall" not in [text for _, text in written.texts[:folded]]

    def test_four_figures_up_front(self, page):
        """Of three queries at 2: recall 1/2, nDCG and MRR as derived here, one perfect.

        First: items nine and ten, nine at rank 1; its nDCG is 1 / (1 + 1 / log2(3)). The others
        have one item each, one not found and one found first.
        """
        (of_first, n) = 1 / (1 + 1 / math.log2(3)), 3
        expected = {
            "Macro recall at k = 2": (0.5 + 0 + 1) / n,
            "nDCG at k = 2": (of_first + 0 + 1) / n,
            "MRR at k = 2": 2 / n,
            "Perfect queries at k = 2": 1 / n,
        }
        assert figures(page(result())) == {name: f"{value:.3f}" for name, value in expected.items()}

    def test_the_interval_of_the_share_perfect(self, page):
        """Wilson's of 1 in 3: its bounds p solve |1/3 - p| = 1.959964 sqrt(p (1 - p) / 3)."""
        said = page(result()).of("p")
        (low, high), z = (0.0614922, 0.7923404), 1.959964
        for bound in (low, high):
            assert abs(1 / 3 - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / 3), 1e-5)
        assert f"95 % interval {low:.3f} to {high:.3f}" in said

    def test_figures_of_what_was_evaluated(self, page):
        """Of recall, nDCG and MRR those there are; else the first three, micro ones left out."""
        assert list(figures(page(result(metrics=["mrr"])))) == [
            "MRR at k = 2", "Perfect queries at k = 2",
        ]  # fmt: skip
        others = ["precision", "map", "hit_rate", "rank"]
        assert list(figures(page(result(metrics=others)))) == [
            "Macro precision at k = 2", "MAP at k = 2", "Hit rate (all found) at k = 2",
            "Perfect queries at k = 2",
        ]  # fmt: skip

    def test_outcomes_at_a_glance(self, page):
        """A bar as wide as the counts, described in words, and a legend with shares."""
        written = page(result())
        (bar,) = [one for tag, one in written.elements if one.get("class") == "outcomes"]
        label = "Outcomes of the queries at k = 2: perfect: 1, partial: 1, missed: 1"
        assert (bar["role"], bar["aria-label"]) == ("img", label)
        assert "perfect: 1 (33 %)" in written.of("li")
        widths = [one["style"] for tag, one in written.elements if one.get("style")]
        assert [one for one in widths if one and "flex-grow" in one] == ["flex-grow: 1"] * 3

    def test_without_intervals(self, page):
        """Nothing is computed that was not asked for."""
        written = page(result(), intervals=False)
        assert written.of("small") == []
        assert "confidence interval." not in written

    def test_intervals_given(self, page):
        """Those that were computed are told, and their level is not invented."""
        table = evaluated_intervals()
        written = page(result(), intervals=table)
        assert "0.1230 to 0.9870" in written.of("small")
        assert "95 %" not in " ".join(written.of("p"))

    def test_few_queries_are_said_on_the_page(self, page):
        """And not in a warning beside it."""
        assert "These numbers rest on 3 queries" in page(result())

    def test_lists_shorter_than_the_cutoff_are_said_on_the_page(self, page):
        """Recall at 10 of lists of two is recall at 2; at 2 there is nothing to say."""
        short = result(k=[2, 10])
        said = "Every list has at most 2 documents, so k = 10 sees no more than that."
        assert said in page(short)
        assert said not in page(short, k=2)
        assert "많아야 2개" in page(short, language="ko")

    def test_what_became_of_the_queries(self, page):
        """One of each at 2: perfect, partial, missed."""
        rows = page(result()).of("th")
        assert [text for text in rows if text in ("perfect", "partial", "missed")] == [
            "perfect", "partial", "missed",
        ]  # fmt: skip

    def test_pictures_are_inside(self, page):
        """Bars, curves against k, the distribution, first ranks: as SVG, ids unique."""
        written = page(result())
        assert sum(tag == "svg" for tag, _ in written.elements) == 4
        ids = [value for _, attributes in written.elements
               for name, value in attributes.items() if name == "id"]  # fmt: skip
        assert ids
        assert len(ids) == len(set(ids))

    def test_a_threshold_has_its_picture(self, page):
        """Of a matcher that takes one."""
        written = page(result(matcher="coverage"))
        assert "Metrics at k = 2 against the threshold" in written.of("title")

    def test_hardest_queries_come_first(self, page):
        """The missed one, then the half answered, then the answered one."""
        written = page(result())
        asked = [text for text in written.of("span") if text in QUERIES]
        assert asked == [QUERIES[1], QUERIES[0], QUERIES[2]]
        assert "found at rank 1" in written
        assert "missed; no predicted document has the same text" in written
        assert "first to cover item 1" in written

    def test_near_misses(self, page):
        """How far below the threshold, and what agrees is marked."""
        text = "one two three four five six seven eight nine ten"
        missed = evaluated([[text]], [[text.removesuffix(" nine ten")]], matcher="coverage")
        written = page(evaluated_at(missed, 0.9))
        assert "missed by 0.1000; nearest: rank 1, similarity 0.8000" in written
        assert "one two three four five six seven eight" in written.of("mark")

    def test_so_many_queries_as_asked_for(self, page):
        """And the page says that there are more; 0 leaves the section out."""
        written = page(result(), n_queries=1)
        assert "1 of 3 queries are shown, those that lost most." in written
        assert len(written.queries) == 1
        assert page(result(), n_queries=0).queries == []

    def test_nothing_was_lost(self, page):
        """A perfect result says so."""
        assert "At k = 2, every query got all" in page(evaluated(ACTUAL, ACTUAL))

    def test_queries_with_the_same_label(self, page):
        """Each is explained by its own documents."""
        same = evaluated([["a"], ["b"]], [["xx"], ["yy"]], queries=["same", "same"])
        written = page(same)
        assert "xx" in written
        assert "yy" in written

    def test_another_cutoff(self, page):
        """Pictures and queries are those of the cutoff asked for."""
        assert "At k = 1, " in page(result(), k=1)

    def test_all_documents(self, page):
        """No cutoff is no cutoff of None."""
        written = page(result(k=[1, None]))
        assert "At all documents, " in written
        assert "@all" in " ".join(written.of("th"))
        assert "None" not in written.source

    def test_settings_and_signature(self, page):
        """All that the numbers depend on."""
        one = result()
        written = page(one)
        assert one.signature in written
        assert set(one.settings) <= set(written.of("td"))

    def test_without_texts(self, page, tmp_path):
        """A result read back without texts has its evidence still."""
        one = result()
        one.to_json(tmp_path / "result.json")
        written = page(EvaluationResult.from_json(tmp_path / "result.json"))
        assert "(text not kept)" in written
        assert "nine" not in written.of("div")

    def test_without_evidence(self, page):
        """The rest is still told."""
        written = page(replace(result(), evidence=None))
        assert "holds no evidence" in written
        assert sum(tag == "svg" for tag, _ in written.elements) == 3

    def test_queries_without_ground_truth(self, page):
        """They are counted apart, and so is how often nothing rightly came back."""
        skipped = evaluated([["a"], []], [["a"], []], no_ground_truth="skip")
        written = page(skipped)
        assert "1 query · 1 without ground truth, left out of the averages" in " ".join(
            written.of("p")
        )
        assert "Rejection rate" in written.of("th")

    def test_nothing_retrieved(self, page):
        """An empty list is said to be one."""
        written = page(evaluated([["a"]], [[]]))
        assert "Nothing was retrieved." in written

    def test_in_korean(self, page):
        """Headings, sentences, pictures, evidence and how to read it."""
        written = page(result(), language="ko")
        assert written.elements[0] == ("html", {"lang": "ko"})
        assert written.of("h1") == ["검색 평가 보고서"]
        for said in ("찾아야 할 정답의 50%를 찾았습니다", "놓침: 본문이 정확히 같은 문서가 없음",
                     "보고서 읽는 법", "재현율"):  # fmt: skip
            assert said in written
        assert "How to read" not in written.source
        assert "queries" not in " ".join(written.of("text"))

    def test_numbers_of_items_take_no_particle_in_korean(self, page):
        """Which particle is right hangs on how a number is read: 1과, but 2와."""
        made = evaluated([["a", "b"]], [["b", "a", "x"]], k=[1, 3])
        written = page(made, k=1, language="ko")
        assert "처음 찾음: 항목 2" in written
        assert "컷오프 밖에서 일치: 항목 1" in written

    def test_title_and_date(self, page):
        """As given, and escaped."""
        written = page(result(), title="A <b> & B", date="2024-05-01")
        assert written.of("h1") == ["A <b> & B"]
        assert written.of("title")[0] == "A <b> & B"
        assert "2024-05-01" in written

    def test_the_same_result_gives_the_same_page(self, page):
        """No dates, no random ids."""
        assert page(result()).source == page(result()).source


def sliced(**options: Any) -> EvaluationResult:
    """Return 41 queries: of 20 in "news" all are answered, of 20 in "chat" 2, and of "law" one."""
    actual = [[f"passage {i}"] for i in range(41)]
    predicted = [*actual[:22], *[["x"]] * 18, actual[40]]
    tags = {"corpus": ["news"] * 20 + ["chat"] * 20 + ["law"]} | options.pop("tags", {})
    return evaluated(actual, predicted, tags=tags, **{"k": 1, "metrics": ["mrr"], **options})


class TestSlices:
    """The sections of ``by``."""

    def test_numbers_are_those_of_the_api(self, page):
        """Each slice with its count, value, difference and p; of one query the count alone.

        The value of "chat" is 2/20, that of the rest 21/21.
        """
        one = sliced()
        written = page(one, by="corpus")
        assert "By corpus" in written.of("h3")
        assert "MRR at k = 1" in written.of("h4")
        chat = one.by("corpus").rows[0]
        rows = {}
        for name in ("chat", "news", "law"):
            start = written.texts.index(("th", name)) + 1
            rows[name] = [text for _, text in written.texts[start : start + 6]]
        assert rows["chat"] == [
            "20", "0.1000", f"{chat.low:.4f} to {chat.high:.4f}", "-0.9000",
            f"{chat.ci_low:.4f} to {chat.ci_high:.4f}", p_value(chat.p_holm),
        ]  # fmt: skip
        assert rows["news"][:2] == ["20", "1.0000"]
        assert rows["law"] == ["1", *["–"] * 5]

    def test_by_what_a_diagnosis_found(self, page):
        """The diagnosis of the page; its classes in the words of the page."""
        one = sliced(k=(1, 2))
        diagnosis = one.diagnose(k=1)
        written = page(one, k=1, by=["corpus", "diagnosis"], diagnosis=diagnosis)
        names = [text for tag, text in written.texts if tag == "th"]
        assert {"found", "missed, not looked for"} <= set(names)
        start = written.texts.index(("th", "missed, not looked for")) + 1
        assert written.texts[start : start + 2] == [("td", "18"), ("td", "0.0000")]

    def test_without_a_diagnosis_there_are_no_slices_by_it(self, page):
        """Unless a column has that name."""
        with pytest.raises(InvalidInput) as refused:
            page(sliced(), by="diagnosis")
        assert refused.value.argument == "by"
        own = sliced(tags={"diagnosis": ["a"] * 20 + ["b"] * 21})
        written = page(own, by="diagnosis", diagnosis=own.diagnose(k=1))
        assert {"a", "b"} <= set(written.of("th"))

    def test_what_is_shown_is_said(self, page):
        """Which slice is worse, by how much; and which are too small. Keys are on no page."""
        written = page(sliced(), by=["corpus"])
        said = "the rest is better than chat on MRR at k = 1 by 0.900 (1.000 against 0.100; 95 %"
        assert any(one.startswith(said) for one in written.of("li"))
        assert "Too few queries for more than a count: law (1)." in written.of("p")
        assert "mrr@1" not in " ".join(written.of("p") + written.of("li"))

    def test_where_lower_is_better(self, page):
        """A mean rank above that of the rest is worse."""
        actual = [[f"passage {i}"] for i in range(40)]
        predicted = [*actual[:20], *[["x", *one] for one in actual[20:]]]
        ranks = evaluated(
            actual, predicted, metrics=["rank"], tags={"half": ["a"] * 20 + ["b"] * 20}, k=2
        )
        written = page(ranks, by="half")
        said = "the rest is better than b on Mean rank (lower is better) at k = 2 by 1.000 (1.000"
        assert any(one.startswith(said) for one in written.of("li"))

    def test_several_tags_and_metrics(self, page):
        """A section for each tag, once, with a picture of its own; a table for each metric."""
        one = sliced(metrics=["recall", "mrr"])
        written = page(one, by=["corpus", "items", "corpus"])
        assert written.of("h3")[:2] == ["By corpus", "By number of ground-truth items"]
        assert written.of("h4") == ["Macro recall at k = 1", "MRR at k = 1"] * 2
        ids = [known["id"] for _, known in written.elements if known.get("id")]
        assert len(ids) == len(set(ids))

    @pytest.mark.filterwarnings("ignore:.*different documents that were retrieved")
    @pytest.mark.parametrize(
        ("language", "heading", "label"),
        [("en", "By diagnosis", "not in the index"), ("ko", "진단별", "색인에 없음")],
    )
    def test_by_the_diagnosis_of_the_page(self, page, language, heading, label):
        """Of 41 queries 22 and the last find their passage, 18 have none in the index."""
        one = sliced(metrics=["recall"])
        diagnosis = one.diagnose(index=[f"passage {i}" for i in [*range(22), 40]], k=1)
        written = page(one, by="diagnosis", diagnosis=diagnosis, language=language)
        assert heading in written.of("h3")
        start = written.texts.index(("th", label)) + 1
        assert [text for _, text in written.texts[start : start + 2]] == ["18", "0.0000"]
        assert "not_in_index" not in written.source

    def test_a_tag_of_that_name(self, page):
        """What the queries are tagged with comes first, as in ``by``."""
        one = sliced(tags={"diagnosis": ["flu"] * 20 + ["cold"] * 21})
        written = page(one, by="diagnosis", diagnosis=one.diagnose(k=1))
        assert ("th", "flu") in written.texts

    def test_too_many_slices(self, page):
        """The page says so, instead of a warning, and how many it leaves out."""
        many = sliced(tags={"id": [f"n{i}" for i in range(41)]})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            written = page(many, by="id", intervals=False)
        assert "41 slices of 41 queries by id are too many to mean anything" in written
        large = evaluated(
            [["a"]] * 130, [["a"]] * 130, tags={"id": [f"n{i // 2}" for i in range(130)]}, k=1
        )
        assert "… and 5 more slices, not shown." in page(large, by="id", intervals=False)

    def test_in_korean(self, page):
        """Sentences, notes, columns."""
        written = page(sliced(), by=["corpus", "items"], language="ko")
        for said in ("corpus별", "정답 항목 수별", "나머지와의 차이", "질문이 너무 적어 개수만"):
            assert said in written
        assert "Few queries" not in written.source

    def test_hostile_tags(self, page):
        """Names and values of tags are shown, and do nothing."""
        tags = {HOSTILE[0]: [HOSTILE[i % 4] for i in range(41)], "b" * 9999: ["a" * 200] * 41}
        check_harmless(page(sliced(tags=tags), by=list(tags)))

    @pytest.mark.parametrize("by", ["nothing", ["corpus", "nothing"], 5])
    def test_no_such_tag(self, tmp_path, by):
        """Nothing is written."""
        with pytest.raises(Refusal) as info:
            write_report(sliced(), tmp_path / "report.html", by=by)
        assert info.value.argument == "by"
        assert list(tmp_path.iterdir()) == []


WANTED = ["one two three four five", "six seven eight nine ten", "not to be found in any chunk"]
STORE = [WANTED[0], WANTED[1], "something else in five words"]


def diagnosed(k: int = 1, **options: Any) -> tuple[EvaluationResult, Any]:
    """Return a result of three items, found at ranks 1 and 3 and nowhere, and its diagnosis."""
    one = evaluated(
        [[WANTED[0]], WANTED[1:]], [[STORE[0]], [STORE[0], STORE[2], STORE[1]]],
        matcher="coverage", k=[1, 3], **options,
    )  # fmt: skip
    return one, one.diagnose(STORE, k=k)


class TestDiagnosis:
    """The section of ``diagnosis``."""

    def test_what_was_lost_where(self, page):
        """One item found, one ranked too low, one not in the index: a third each."""
        one, found = diagnosed()
        written = page(one, k=1, diagnosis=found)
        assert "Where it was lost" in written.of("h2")
        assert found.summary() in written.of("p")
        assert "33 % of passages are not in the index: check what was ingested." in written.of("li")
        start = written.texts.index(("th", "recall now"))
        rows = [text for _, text in written.texts[start : start + 24]]
        assert rows == [
            "recall now", "1", "0.3333", "0.3333",
            "with pieces", "0", "0.0000", "0.3333",
            "with k = 3", "1", "0.3333", "0.6667",
            "with perfect ranking", "0", "0.0000", "0.6667",
            "with other chunks", "0", "0.0000", "0.6667",
            "with everything in the index", "1", "0.3333", "1.0000",
        ]  # fmt: skip
        assert "recall would be 0.667" in written
        assert "Causes are assigned one after the other" in written
        assert any(one.startswith("What recall would be") for one in written.of("title"))

    def test_another_cutoff_is_said(self, page):
        """Where the diagnosis is of another k than the page."""
        one, found = diagnosed()
        assert "Diagnosed at k = 1; the figures above are at k = 3." in page(one, diagnosis=found)
        assert "Diagnosed at" not in page(one, k=1, diagnosis=found).source

    def test_items_without_words(self, page):
        """They are told apart."""
        one = evaluated([["!!!", WANTED[0]]], [[WANTED[0]]], matcher="coverage", k=1)
        written = page(one, diagnosis=one.diagnose(STORE, k=1))
        assert "Items without words, which count nowhere here: 1." in written

    def test_in_korean(self, page):
        """Sentences, steps and what the ceiling is."""
        one, found = diagnosed()
        written = page(one, diagnosis=found, language="ko")
        for said in ("정답을 놓친 원인", "색인에 없습니다", "k = 3까지 보면", "색인 상한"):
            assert said in written
        assert "of passages" not in written.source

    def test_without_one(self, page):
        """There is no section."""
        assert "Where it was lost" not in page(diagnosed()[0])

    @pytest.mark.parametrize(
        "other",
        [
            {"queries": ["a", "c"]},
            {"actual": [["one"], ["two"]]},
            {"actual": [[WANTED[0]], WANTED[1:], ["three"]], "queries": ["a", "b", "c"]},
        ],
        ids=["labels", "items", "queries"],
    )
    def test_of_another_result(self, tmp_path, other):
        """Its queries and their numbers of items must be those of the result."""
        found = diagnosed(queries=["a", "b"])[1]
        actual = other.get("actual", [[WANTED[0]], WANTED[1:]])
        labels = other.get("queries", ["a", "b"])
        result = evaluated(actual, [["x"]] * len(actual), queries=labels)
        with pytest.raises(InvalidInput) as info:
            write_report(result, tmp_path / "report.html", diagnosis=found)
        assert info.value.argument == "diagnosis"
        with pytest.raises(InvalidInput):
            write_report(diagnosed(queries=["a", "b"])[0], tmp_path / "r.html",
                         diagnosis=result.diagnose(["x"], k=1))  # fmt: skip

    def test_something_else(self, tmp_path):
        """What diagnose returned, and nothing else."""
        with pytest.raises(InvalidType) as info:
            write_report(result(), tmp_path / "report.html", diagnosis=STORE)  # type: ignore[arg-type]
        assert info.value.argument == "diagnosis"


# An item of ten words, cut in two; another document stands between the halves.
HALVES = ["a b c d e", "x y z", "f g h i j"]


def in_pieces(documents: list[str] = HALVES, **options: Any) -> EvaluationResult:
    return evaluated(
        [["a b c d e f g h i j"]],
        [documents],
        **{"matcher": "coverage(union=true)", "k": ["5w", "20w", 2], **options},
    )


class TestBudgetsAndWords:
    """What the page says of budgets, of words, and of items found in pieces."""

    def test_budgets_have_columns_and_a_picture(self, page):
        """Those of each unit with several; how to read them is said."""
        written = page(in_pieces(k=[2, 3, "5w", "20w", "9c"]))
        assert {"@2", "@3", "@5w", "@20w", "@9c"} <= set(written.of("th"))
        titles = " ".join(written.of("title"))
        assert titles.count("Macro token recall against the budget") == 1
        assert "Metrics against k" in titles
        assert "A number @5w covers" in " ".join(data for _, data in written.texts)

    def test_without_budgets(self, page):
        """Nothing is said of them, nor of words where the matcher counts none."""
        written = page(result())
        assert "budget" not in written.source
        assert "Token recall" not in written
        assert "Items and documents" not in written.of("th")

    def test_budgets_alone(self, page):
        """The largest is what plots and queries are shown at."""
        written = page(in_pieces(k=["5w", "2000w"]))
        assert "Retrieval metrics within 2,000 words (1 query)" in written.of("title")
        assert "At a budget of 2,000 words, 100 %" in written
        korean = page(in_pieces(k=["5w", "2000w"]), language="ko")
        assert "예산 2,000단어 기준으로" in korean

    def test_metrics_of_words_are_a_group(self, page):
        """Below the others, each with its direction."""
        rows = page(in_pieces()).of("th")
        first, second = rows.index("Items and documents"), rows.index("Words")
        assert first < rows.index("nDCG") < second < rows.index("Micro token recall")
        assert "Redundancy (lower is better)" in rows[second:]
        assert "토큰(단어나 글자) 단위" in page(in_pieces(), language="ko").of("th")

    def test_pieces_complete_an_item_too_late(self, page):
        """The item is found at rank 3, when only two documents are seen."""
        written = page(in_pieces(), k=2)
        said = "missed; ranks 1 and 3 together hold 100 %, rank 3 beyond the cutoff"
        assert said in written.of("p")
        assert "beyond the cutoff, completes item 1 · similarity 0.5000" in written.of("p")
        korean = page(in_pieces(), k=2, language="ko").of("p")
        assert "놓침: 1위와 3위를 합치면 100% 포함(3위는 컷오프 밖)" in korean

    def test_an_item_found_in_pieces(self, page):
        """It is good, as are the documents that hold it."""
        options = {"k": "all", "queries": ["Which letters?"]}
        found = in_pieces([*HALVES, "x"], **options)
        lost = evaluated(
            [["a b c d e f g h i j", "k l m n o"]], [HALVES], matcher="coverage(union=true)",
            **options,
        )  # fmt: skip
        assert "every query got all" in page(found).source
        written = page(lost)
        assert "found in pieces: ranks 1 and 3 together hold 100 %" in written.of("p")
        tones = [one["class"] for tag, one in written.elements if tag == "li" and "class" in one]
        assert tones == ["good", "bad", "good", "faint", "good"]


def evaluated_intervals() -> Any:
    """Return a table of intervals as the result has them, with bounds to be recognised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        table = result().confidence_intervals(n_resamples=100)
    return table.assign(low=0.123, high=0.987)


def evaluated_at(one: EvaluationResult, threshold: float) -> EvaluationResult:
    """Return the result of another threshold, from the same texts."""
    texts = one.evidence.texts.queries  # type: ignore[union-attr]
    evaluator = OfflineRetrievalEvaluator(
        texts.actual, texts.predicted, matcher="coverage", threshold=threshold
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KragEvalWarning)
        return evaluator.evaluate(k=[1, 2])


SCRIPT = Path(krag_eval.__file__).parent / "report" / "templates" / "page.js"
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "</title></summary></details></div></main>",
    "<svg onload=alert(1)>]]><!--",
    "{{ 7 * 7 }} {% raw %} ${x} \\",
    "'\" onmouseover=alert(1) javascript:alert(1)",
    "\x00\x07\x1b[31m\x7f\x85\ud800\ufffe",
    "\u202eright to left\u2066 \u200f",
    "a" * 1_000_000,
    "Z" + "\u0301" * 10_000,
    "&lt;script&gt; &#x3c;",
]
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066\u2067\u2069\ud800-\udfff]"
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer"),
    *("h1", "h2", "h3", "h4", "p", "div", "span", "strong", "em", "code", "small", "mark"),
    "figure",
    *("table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd", "ul", "ol", "li"),
    *("a", "script", "input", "select", "option", "button", "kbd", "output", "data", "b"),
    *("details", "summary", "svg", "g", "defs", "path", "use", "text", "tspan", "clippath", "rect"),
}  # fmt: skip


def check_harmless(written: Page) -> None:
    """Nothing but our own elements; no handler, no address; nothing that acts on the reader."""
    assert written.tags() <= ALLOWED
    assert written.open == []
    for tag, attributes in written.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "xlink:href", "src"):
                assert (value or "").startswith("#")
            assert "url(" not in (value or "").replace("url(#", ""), (tag, name)
    assert not ACTING.search(written.source)
    (script,) = written.of("script")
    assert script == SCRIPT.read_text("utf-8").strip()
    (found,) = re.findall("<script>(.*)</script>", written.source, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()
    policies = [a["content"] for t, a in written.elements if a.get("http-equiv")]
    assert policies == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    ]


class TestHostileTexts:
    """Whatever a text holds, it is shown and does nothing."""

    @pytest.fixture(scope="class")
    @staticmethod
    def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
        # Each hostile text is query, ground truth and prediction, and never found.
        predicted = [[text + "!", *HOSTILE] for text in HOSTILE]
        one = evaluated(
            [[f"wanted {text}"] for text in HOSTILE], predicted, queries=list(HOSTILE), k=3
        )
        path = tmp_path_factory.mktemp("hostile") / "report.html"
        write_report(one, path, n_queries=20, title=HOSTILE[0], date=HOSTILE[1])
        return Page(path.read_text("utf-8"))

    def test_nothing_runs(self, hostile):
        """No element, handler or address comes from a text."""
        check_harmless(hostile)

    def test_texts_are_shown_as_they_are(self, hostile):
        """Markup is read as text, also that which is escaped already, or a template's."""
        for text in HOSTILE[:6] + HOSTILE[-1:]:
            assert text in hostile

    def test_what_would_act_is_spelled_out(self, hostile):
        """Control characters and changes of direction."""
        assert "\\x00\\x07\\x1b[31m" in hostile
        assert "\\u202eright to left" in hostile

    def test_long_texts_are_clipped(self, hostile):
        """A megabyte, shown in 22 places, stays a few hundred characters each."""
        assert len(hostile.source) < 500_000
        assert max(map(len, re.findall("a{100,}", hostile.source))) < 1_000

    def test_texts_stay_in_their_boxes(self, hostile):
        """Long words break, direction and stacked marks stay inside."""
        (style,) = hostile.of("style")
        box = re.search(r"\.told div \{([^}]*)\}", style)
        assert box is not None
        assert "overflow: hidden" in box[1]
        assert "unicode-bidi: isolate" in box[1]
        assert "overflow-wrap: anywhere" in style
        boxes = [a for tag, a in hostile.elements if tag == "div" and not a.get("class")]
        questions = [a for _, a in hostile.elements if a.get("class") == "question"]
        assert boxes
        assert questions
        assert all(attributes.get("dir") == "auto" for attributes in [*boxes, *questions])

    def test_nothing_comes_from_the_network(self, hostile):
        """Not even a style sheet; addresses are names of namespaces."""
        addresses = set(re.findall(r"""(?:=|url\()["']?(https?:[^"')\s]+)""", hostile.source))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


class TestRefusals:
    """What cannot be written."""

    @pytest.mark.parametrize("n_queries", [-1, 1.5, True])
    def test_number_of_queries(self, tmp_path, n_queries):
        """A whole number."""
        with pytest.raises(Refusal) as info:
            write_report(result(), tmp_path / "report.html", n_queries=n_queries)
        assert info.value.argument == "n_queries"

    def test_language(self, tmp_path):
        """One of those there are."""
        with pytest.raises(ValueError, match="language must be one of 'en', 'ko', got 'de'"):
            write_report(result(), tmp_path / "report.html", language="de")  # type: ignore[arg-type]

    def test_cutoff(self, tmp_path):
        """One that was evaluated."""
        with pytest.raises(ValueError, match=r"k must be one of the evaluated cutoffs \(1, 2\)"):
            write_report(result(), tmp_path / "report.html", k=7)

    def test_something_else(self, tmp_path):
        """Neither another object nor an option that a page does not have."""
        with pytest.raises(InvalidType) as info:
            write_report([result()], tmp_path / "report.html")  # type: ignore[arg-type]
        assert info.value.argument == "shown"
        for thing, option in ((compared(), "k"), (result(), "cutoff")):
            with pytest.raises(TypeError, match=option):
                write_report(thing, tmp_path / "report.html", **{option: 1})

    def test_no_such_directory(self, tmp_path):
        """Nothing is created."""
        with pytest.raises(FileNotFoundError, match="there is no directory"):
            write_report(result(), tmp_path / "none" / "report.html")

    def test_a_failure_leaves_what_was_there(self, tmp_path):
        """A page appears complete or not at all."""
        path = tmp_path / "report.html"
        path.write_text("before")
        with pytest.raises(ValueError, match="n_queries"):
            write_report(result(), path, n_queries=-1)
        assert path.read_text() == "before"
        assert list(tmp_path.iterdir()) == [path]


def test_ids_and_chosen_metadata_stand_beside_each_document(page: Callable[..., Page]) -> None:
    """The source unless others are named."""
    chunk = {"page_content": "no drinks", "id": "c7", "metadata": {"source": "a.pdf", "page": 3}}
    missed = evaluated([["no food"]], [[chunk]], k=1)
    known = '<p class="about" dir="auto">id <b>c7</b> · {}</p>'
    assert known.format("source <b>a.pdf</b>") in page(missed).source
    assert known.format("page <b>3</b>") in page(missed, metadata=["page"]).source
    with pytest.raises(Refusal) as info:
        page(missed, metadata=[3])
    assert info.value.argument == "metadata"
