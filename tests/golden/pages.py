"""Pages to write down as text: of results, comparisons and slices worked out by hand."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

from matplotlib.figure import Figure

from golden.plot_samples import evaluated_lists
from krag_eval import EvaluationResult, compare, evaluate_retrievers, to_label
from krag_eval.diagnosis.diagnosis import DiagnosedItem
from krag_eval.plotting import styling
from krag_eval.report import write_report

QUERIES = ["When is it open?", "May I eat here?", "Who can join?"]
ACTUAL = [["nine", "ten"], ["no food"], ["everyone"]]
PREDICTED = [["nine", "five"], ["no drinks"], ["everyone"]]
WANTED = ["one two three four five", "six seven eight nine ten", "not to be found in any chunk"]
STORE = [WANTED[0], WANTED[1], "something else in five words"]
LABELLED = [{"question": "When?", "actual": ["nine"], "predicted": "</script> nine"}]
# An item of ten words, cut in two; another document stands between the halves.
HALVES = ["a b c d e", "x y z", "f g h i j"]


def evaluated(
    actual: Any = ACTUAL, predicted: Any = PREDICTED, k: Any = (1, 2), **options: Any
) -> EvaluationResult:
    """Evaluate two lists, without the warnings that so few queries bring."""
    return evaluated_lists(actual, predicted, k, **options)


def result(**options: Any) -> EvaluationResult:
    """Return three queries: one half answered, one missed, one answered."""
    return evaluated(queries=QUERIES, **options)


def sliced(**options: Any) -> EvaluationResult:
    """Return 41 queries: of 20 in "news" all are answered, of 20 in "chat" 2, and of "law" one."""
    actual = [[f"passage {i}"] for i in range(41)]
    predicted = [*actual[:22], *[["x"]] * 18, actual[40]]
    tags = {"corpus": ["news"] * 20 + ["chat"] * 20 + ["law"]} | options.pop("tags", {})
    return evaluated(actual, predicted, **{"tags": tags, "k": 1, "metrics": ["mrr"], **options})


def of_three(**options: Any) -> EvaluationResult:
    """Return three items, found at ranks 1 and 3 and nowhere."""
    lists = [[STORE[0]], [STORE[0], STORE[2], STORE[1]]]
    return evaluated([[WANTED[0]], WANTED[1:]], lists, [1, 3], matcher="coverage", **options)


def four(**options: Any) -> EvaluationResult:
    """Return a query found at rank 1, one at rank 2, one half found, one missed."""
    actual = [["a one"], ["b one"], ["c one", "c two"], ["d one"]]
    predicted = [["a one", "x"], ["x", "b one"], ["c one", "x"], ["x", "y"]]
    return evaluated(actual, predicted, queries=["found", "late", "half", "lost"], **options)


def in_pieces(documents: Any = HALVES, k: Any = ("5w", "20w", 2), **options: Any) -> Any:
    """Return an item of ten words and what was retrieved for it."""
    options = {"matcher": "coverage(union=true)", **options}
    return evaluated([["a b c d e f g h i j"]], [documents], k, **options)


def asked(predicted: Any, **options: Any) -> EvaluationResult:
    """Evaluate one question whose answer is "nine"."""
    return evaluated([["nine"]], [predicted], [2], queries=["When?"], **options)


def finding(n: int, **options: Any) -> EvaluationResult:
    """Evaluate 40 queries of which the first n find what they want."""
    actual = [[f"d{i}"] for i in range(40)]
    predicted = [truth if i < n else ["x"] for i, truth in enumerate(actual)]
    return evaluated(actual, predicted, [1, 3], **options)


def compared(systems: Any, metric: Any = "mrr@2", **options: Any) -> Any:
    """Compare without the warnings that so few queries bring."""
    with warnings.catch_warnings(action="ignore"):
        return compare(systems, metric, **{"n_resamples": 200, **options})


def _two(old: Any, new: Any, metric: str = "mrr@2", **options: Any) -> Any:
    return compared({"old": asked(old, **options), "new": asked(new, **options)}, metric)


def document(text: str, one: str | None) -> dict[str, Any]:
    """Return a document with an id."""
    return {"page_content": text, "id": one, "metadata": {"source": "guide.pdf"}}


def _classes() -> Any:
    """Return the four queries with a diagnosis of which the furthest behind counts."""
    made = four()
    causes = [(0, "found"), (1, "ranked_too_low"), (2, "no_words"), (2, "found"),
              (3, "not_in_index")]  # fmt: skip
    items = tuple(DiagnosedItem(made.labels[at], at, 1, cause) for at, cause in causes)
    return replace(made.diagnose(k=2), items=items)


def _broken(question: str) -> list[str]:
    raise TimeoutError("no answer from <b>there</b>")


def _failed() -> Any:
    systems = {"broken": _broken, "sound": lambda question: ["nine"]}
    rows = [{"question": "When?", "actual": ["nine"]}]
    return evaluate_retrievers(systems, rows, 1, on_error="record", n_resamples=100, progress=False)


def saved(one: EvaluationResult) -> EvaluationResult:
    """Return a result as it is read back, without texts."""
    one.to_json("one.json")
    return EvaluationResult.from_json("one.json")


def _clustered(clusters: str | None) -> Any:
    def of(misses: range) -> EvaluationResult:
        tags = {"source": [f"handbook {i // 4}" for i in range(80)]}
        lists = [["x"] if i in misses else ["a"] for i in range(80)]
        return evaluated([["a"]] * 80, lists, 2, tags=tags)

    systems = {"old": of(range(8)), "new": of(range(4, 14))}
    return compared(systems, clusters=clusters, n_resamples=100)


def _in_common() -> Any:
    def of(first: int, last: int) -> EvaluationResult:
        lists = [[f"passage {i}"] for i in range(first, last)]
        return evaluated(lists, lists, 2, queries=[f"q{i}" for i in range(first, last)])

    return compared({"<b>old</b>": of(0, 40), "new": of(5, 47)}, on="common", n_resamples=100)


def _undefined(without: str) -> Any:
    systems = {
        name: evaluated([["a"]] * 3, [["x" if name in without else "a"]] * 3, [1], metrics=["rank"])
        for name in ("bm25", "dense")
    }
    return compared(systems, "mean_rank@1")


_NINE, _TEN = [["nine"], ["ten"]], ["a?", "b?"]
_CORPUS = {"corpus": ["wiki"] * 15 + ["chat"] * 20 + ["<i>few</i>"] * 5}
_INTERVALS = {"low": 0.123, "high": 0.987}
_RANKED = [["x", "y", "nine"], ["nine", "x", "z"]]

#: Name -> what is shown, and the options of its page.
CASES: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "pairs to label": lambda: (to_label(LABELLED), {}),
    "result": lambda: (result(), {"title": "A <b> & B", "date": "2024-05-01"}),
    "of MRR": lambda: (result(metrics=["mrr"]), {"intervals": False}),
    "of what has no figure": lambda: (
        result(metrics=["precision", "map", "hit_rate", "rank"]), {"n_queries": 1}),
    "with intervals given": lambda: (
        result(), {"intervals": intervals(result()), "n_queries": 0}),
    "of short lists": lambda: (result(k=[2, 10]), {"n_queries": 0}),
    "of short lists at 2": lambda: (result(k=[2, 10]), {"k": 2, "n_queries": 0}),
    "of a near miss": lambda: (evaluated([["one two three four five six seven eight nine ten"]],
        [["one two three four five six seven eight"]], matcher="coverage", threshold=0.9), {}),
    "of nothing lost": lambda: (evaluated(ACTUAL, ACTUAL), {}),
    "of one label twice": lambda: (
        evaluated([["a"], ["b"]], [["xx"], ["yy"]], queries=["same", "same"]), {}),
    "of all documents": lambda: (result(k=[1, None]), {}),
    "without texts": lambda: (saved(result()), {}),
    "without evidence": lambda: (replace(result(), evidence=None), {}),
    "without ground truth": lambda: (
        evaluated([["a"], [], []], [["a"], ["x"], []], no_ground_truth="skip"), {}),
    "of nothing retrieved": lambda: (evaluated([["a"]], [[]]), {}),
    "of numbers of items": lambda: (evaluated([["a", "b"]], [["b", "a", "x"]], [1, 3]), {"k": 1}),
    "by corpus": lambda: (sliced(), {"by": ["corpus", "items", "corpus"], "n_queries": 0}),
    "by corpus, two metrics": lambda: (
        sliced(metrics=["recall", "mrr"]), {"by": "corpus", "n_queries": 0}),
    "by a half that is worse": lambda: (evaluated([[f"passage {i}"] for i in range(40)],
        [[f"passage {i}"] if i < 20 else ["x", f"passage {i}"] for i in range(40)], 2,
        metrics=["rank"], tags={"half": ["a"] * 20 + ["b"] * 20}), {"by": "half", "n_queries": 0}),
    "by diagnosis": lambda: (sliced(k=(1, 2)), {"k": 1, "by": ["corpus", "diagnosis"],
        "diagnosis": sliced(k=(1, 2)).diagnose(k=1), "n_queries": 0}),
    "by a tag called diagnosis": lambda: (
        sliced(tags={"diagnosis": ["flu"] * 20 + ["cold"] * 21}),
        {"by": "diagnosis", "diagnosis": sliced().diagnose(k=1), "n_queries": 0}),
    "by too many": lambda: (sliced(tags={"id": [f"n{i}" for i in range(41)]}),
        {"by": "id", "intervals": False, "n_queries": 0}),
    "diagnosed": lambda: (of_three(), {"k": 1, "diagnosis": of_three().diagnose(STORE, k=1)}),
    "diagnosed at another k": lambda: (
        of_three(), {"diagnosis": of_three().diagnose(STORE, k=1), "n_queries": 0}),
    "diagnosed without words": lambda: (_wordless(), {"diagnosis": _wordless().diagnose(STORE)}),
    "with budgets": lambda: (in_pieces(k=[2, 3, "5w", "20w", "9c"]), {}),
    "of budgets alone": lambda: (in_pieces(k=["5w", "2000w"]), {}),
    "of pieces too late": lambda: (in_pieces(), {"k": 2}),
    "of pieces": lambda: (in_pieces([*HALVES, "x"], "all"), {}),
    "of pieces and a miss": lambda: (evaluated([["a b c d e f g h i j", "k l m n o"]], [HALVES],
        "all", matcher="coverage(union=true)"), {}),
    "four queries": lambda: (four(tags={"corpus": ["wiki", "chat", "wiki", None],
        "size": [10, 9, 10, 9], "kind": [True, 1, "1", 1.0]}), {}),
    "four queries at 1": lambda: (four(), {"k": 1}),
    "four queries with classes": lambda: (four(), {"diagnosis": _classes()}),
    "comparison": lambda: (compared({"a": result(), "b": evaluated(ACTUAL, ACTUAL,
        queries=QUERIES)}, ["ndcg@2", "mean_rank@2"]), {}),
    "comparison of one query": lambda: (compared({"a": result(), "b": evaluated(ACTUAL, ACTUAL,
        queries=QUERIES)}, ["ndcg@2"]), {"n_queries": 1}),
    "comparison without queries": lambda: (
        compared({"bm25": finding(20), "dense": finding(30)}, "mrr@1"), {"n_queries": 0}),
    "comparison of three": lambda: (
        compared({"low": finding(10), "high": finding(30), "also high": finding(30)},
        ["mrr@1", "macro_recall@3"]), {"n_queries": 0}),
    "comparison with a baseline": lambda: (compared({"a": finding(10), "<b>": finding(20),
        "c": finding(30)}, "mrr@1", baseline="<b>"), {"n_queries": 0}),
    "comparison in common": lambda: (_in_common(), {"n_queries": 0}),
    **{f"comparison by clusters of {name}": lambda name=name: (_clustered(name), {"n_queries": 0})
       for name in (None, "source")},
    "comparison at budgets": lambda: (compared({"a": in_pieces(), "b": in_pieces(HALVES[::-1])},
        ["ndcg@20w", "mrr@5w", "mrr@20w"]), {}),
    "comparison with budgets": lambda: (
        compared({"a": in_pieces(), "b": in_pieces(HALVES[::-1])}), {"n_queries": 0}),
    "comparison of nine": lambda: (compared({f"system {i}": in_pieces() for i in range(9)}),
        {"n_queries": 0}),
    "ranks that changed": lambda: (_two(*_RANKED, "macro_recall@2"), {}),
    "a document lost": lambda: (_two(["nine", "x"], ["y", "x"], "macro_recall@2"), {}),
    "a document that is new": lambda: (_two(["y", "x"], ["nine", "x"], "macro_recall@2"), {}),
    # The same by its id, though edited; another by its id; the same by its text.
    **{f"documents with id {one}": lambda text=text, one=one: (_two([document("closed", "x"),
           document("opens at nine", "d7")], [document(text, one)], matcher="contains"), {})
       for text, one in (("nine sharp", "d7"), ("opens at nine", "d8"), ("opens at nine", None))},
    "words that match": lambda: (
        _two(["shut"], ["it opens at nine sharp"], matcher="contains"), {}),
    "queries that share a label": lambda: (compared({
        "old": evaluated(_NINE, [["x"], ["ten"]], queries=["When?", "When?"]),
        "new": evaluated(_NINE, _NINE, queries=["When?", "When?"])}), {}),
    "queries without ground truth between": lambda: (compared({name: evaluated([[], ["nine"]],
        lists, queries=QUERIES[:2], no_ground_truth="skip") for name, lists in
        {"old": [["a"], ["x"]], "new": [["b"], ["nine"]]}.items()}), {}),
    "comparison without texts": lambda: (
        compared({name: saved(asked(one)) for name, one in zip("ab", _RANKED, strict=True)}), {}),
    "queries in another order": lambda: (compared({
        "old": evaluated(_NINE, [["x", "nine"], ["ten"]], queries=_TEN),
        "new": evaluated(_NINE[::-1], [["ten"], ["nine"]], queries=_TEN[::-1])}), {}),
    "comparison without evidence": lambda: (compared({
        "old": evaluated(_NINE, [["x"], ["ten"]], queries=_TEN),
        "new": replace(evaluated(_NINE, _NINE, queries=_TEN), evidence=None)}), {}),
    # "ten" is found by both, "nine" by the second alone.
    "ground truth in another order": lambda: (compared({
        "old": evaluated([["nine", "ten"]], [["ten", "x"]], [2], queries=["When?"]),
        "new": evaluated([["ten", "nine"]], [["nine", "ten"]], [2], queries=["When?"])},
        "macro_recall@2"), {}),
    "a retriever that failed": lambda: (_failed(), {}),
    "comparison with nothing retrieved": lambda: (_two([], ["nine"]), {}),
    **{f"no rank of {name}": lambda name=name: (_undefined(name), {"n_queries": 0})
       for name in ("dense", "bm25 and dense")},
    "nothing changed": lambda: (compared({"a": result(), "b": result()}), {}),
    # Of the 15 in "wiki", the one finds 10 and the other all.
    "comparison by corpus": lambda: (compared({"bm25": finding(10, tags=_CORPUS),
        "dense": finding(30, tags=_CORPUS)}, ["mrr@1"]), {"by": ("corpus", "items"),
        "n_queries": 0}),
}  # fmt: skip


def intervals(one: EvaluationResult) -> Any:
    """Return a table of intervals as the result has them, with bounds to be recognised."""
    with warnings.catch_warnings(action="ignore"):
        return one.confidence_intervals(n_resamples=100).assign(**_INTERVALS)


def _wordless() -> EvaluationResult:
    return evaluated([["!!!", WANTED[0]]], [[WANTED[0]]], 1, matcher="coverage")


#: What is written in every language: of each sentence that depends on the case, one.
IN_EVERY_LANGUAGE = (
    "result", "of short lists", "of a near miss", "of numbers of items", "without ground truth",
    "by corpus", "by diagnosis", "diagnosed", "of budgets alone", "of pieces too late",
    "four queries", "comparison", "comparison in common", "comparison by clusters of source",
    "comparison with budgets", "ranks that changed", "no rank of dense",
    "no rank of bm25 and dense", "comparison by corpus",
)  # fmt: skip


def told(case: str, *, drawn: bool = True) -> str:
    """Write the page of a case, and return its text."""
    with warnings.catch_warnings(action="ignore"):
        shown, options = CASES[case]()
        with without_pictures(drawn=drawn):
            write_report(shown, "page.html", **options)
    page = _Text()
    page.feed(Path("page.html").read_text("utf-8"))
    return "\n".join(page.lines)


@contextmanager
def without_pictures(*, drawn: bool = False) -> Iterator[None]:
    """Put their titles in the place of pictures, which takes a tenth of the time."""

    def titled(draw: Callable[[Any], Any], name: str, *, size: Any) -> str:
        ax = Figure(size).subplots()
        if drawn:
            draw(ax)
        title = re.sub(r"\s+", " ", ax.get_title(loc="left"))
        return f"<svg><title>{title} ({name}, {size[0]:.3g} by {size[1]:.3g})</title></svg>"

    with mock.patch.object(styling, "inline_svg", titled):
        yield


_TOLD = ("value", "data-status", "data-facets", "aria-label", "style", "open", "lang", "hidden")
_INLINE = {"span", "strong", "em", "code", "small", "b", "data", "div", "kbd", "title"}


class _Text(HTMLParser):
    """A page as lines of text: tag and class of each block, marks in «»; no way of reading it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._skipped = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in ("style", "script", "dd"):
            self._skipped = tag
        elif tag == "mark":
            self._say("«")
        elif tag in ("th", "td"):
            self._say(" | ")
        elif tag not in _INLINE:
            named = f"<{tag} {known.get('class') or ''}".strip() + ">"
            about = [f"{name}={known[name]}" for name in _TOLD if name in known]
            self.lines.append(" ".join([named, *about]))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipped:
            self._skipped = ""
        elif tag == "mark":
            self._say("»")

    def handle_data(self, data: str) -> None:
        if not self._skipped and data.strip():
            self._say(" " + " ".join(data.split()))

    def _say(self, text: str) -> None:
        self.lines[-1] += text
