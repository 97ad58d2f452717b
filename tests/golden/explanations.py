"""Explanations to write down: what became of each document and each item, in lines of text."""

import warnings
from collections.abc import Callable
from typing import Any

from reference import TableMatcher

from krag_eval import AnyOf, Explanation, OfflineRetrievalEvaluator

_LONG = " ".join(f"word{i}" for i in range(60))
_MATTERS = {("a", "p"): 1.0, ("b", "q"): 0.25, ("a", "late"): 1.0}


def explained(
    actual: Any, predicted: Any, table: Any = None, k: Any = 5, position: int = 0, **options: Any
) -> Explanation:
    """Explain a query, whose similarities may be written down in a table."""
    if table is not None:
        options["matcher"] = TableMatcher(table)
    how = {name: options.pop(name) for name in ("full", "metadata") if name in options}
    with warnings.catch_warnings(action="ignore"):  # little is found
        result = OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(k)
    return result.explain(position=position, **how)


def _matters(**how: Any) -> Explanation:
    """Explain a query whose first and last documents matter, at cutoff 3."""
    described = {"page_content": _LONG, "id": "x1"}
    return explained([["a", "b"]], [["p", described, "x", "q", "late"]], _MATTERS, 3, **how)


#: Name -> what is explained. Similarities are compared with a threshold of 0.5.
CASES: dict[str, Callable[[], Explanation]] = {
    # First, repeat, not relevant but close, too late; found, missed by so much, nothing.
    "every fate": lambda: explained([["a", "b", "c", "d"]], [["p", "q", "r", "s", "t"]],
        {("a", "p"): 0.75, ("a", "q"): 0.5, ("b", "r"): 0.375, ("c", "s"): 1.0}, 3,
        queries=["What?"]),
    # A document takes a line where it matched nothing, or repeats an item beyond the cutoff.
    "what no outcome rests on": _matters,
    "every text whole": lambda: _matters(full=True),
    "a document that covers and repeats": lambda: explained([["a", "b"]], [["p", "q"]],
        {("a", "p"): 1.0, ("a", "q"): 1.0, ("b", "q"): 1.0}, 2),
    "ids and metadata": lambda: explained([["a b c"]],
        [[{"page_content": "a b c", "id": "c1", "metadata": {"source": "guide.pdf"}}]],
        metadata="source"),
    "right to left": lambda: explained([["שלום לכולם היום"]], [["שלום לכולם היום"]],
        queries=["שאלה"]),
    "rewarded repeats": lambda: explained([["a"]], [["a", "a"]], conventions="credit=every"),
    "a blank text": lambda: explained([["a"]], [["  "]]),
    "nothing retrieved": lambda: explained([["a"]], [[]]),
    "no ground truth": lambda: explained([["a"], []], [["a"], ["b"]], position=1,
        no_ground_truth="skip"),
    "many documents": lambda: explained([["a", "b"]], [[f"p{i}" for i in range(1, 501)]],
        {("a", "p400"): 1.0, ("b", "p450"): 0.25}),
    "many items": lambda: explained([[f"t{i}" for i in range(300)]], [["t299"]]),
    "many alternatives": lambda: explained(
        [[AnyOf([f"alternative {i}" for i in range(10)])]], [["alternative 9"]]),
    "six alternatives": lambda: explained([[AnyOf(list("abcdef")), "g"]], [["a"]]),
}  # fmt: skip


def told(case: str) -> str:
    """Return an explanation in lines of 80 columns."""
    return CASES[case]().to_text(80)
