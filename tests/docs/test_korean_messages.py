"""docs/ko/messages.md: every message there is printed as it stands, and by what its row says."""

import io
import re
import warnings
from collections.abc import Callable

import pytest
from places import DOCS

from krag_eval import OfflineRetrievalEvaluator as Evaluator, compare, load_dataset
from krag_eval.datasets import read_jsonl

PAGE = (DOCS / "ko" / "messages.md").read_text("utf-8")
SHOWN = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
ONE = [["가"]]
CP949 = "질문,정답\n언제,\"['가']\"\n".encode("cp949")


def result(matcher="text"):
    return Evaluator(ONE, ONE, matcher=matcher).evaluate(k=1)


#: In the order of the page.
CAUSES: list[Callable[[], object]] = [
    lambda: Evaluator([["가"], ["나"]], ONE),
    lambda: Evaluator([["가"], []], [["가"], ["나"]]),
    lambda: load_dataset([{"질문": "언제?", "답": "아홉 시"}]),
    lambda: load_dataset(io.StringIO("질문,정답\n언제?,아홉 시\n"), format="csv"),
    lambda: load_dataset(io.BytesIO(CP949), format="csv"),
    lambda: read_jsonl(io.StringIO('{"actual": ["가"]}')),
    lambda: Evaluator([["책은 4주"]], [["안내. 책은 4주"]]).calculate_recall(k=1),
    lambda: Evaluator(ONE, ONE, matcher="converage"),
    lambda: Evaluator(ONE, ONE, matcher="coverage", threshold=80),
    lambda: Evaluator(ONE, ONE, threshold=0.5),
    lambda: Evaluator(ONE, ONE, matcher="rouge1(tokenizer=rouge_score)").calculate_recall(k=1),
    lambda: Evaluator([[""], ["나"]], [["가"], ["나"]]).calculate_recall(k=1),
    lambda: Evaluator(ONE, ONE).calculate_recall(k=0),
    lambda: Evaluator(ONE, [["가", "나"]]).evaluate(k=[1, 5]),
    lambda: result().check({"macro_recall@5": 0.8}),
    lambda: result().check({"macro_recall@1": 80}),
    lambda: compare({"a": result(), "b": result()}),
    lambda: compare({"a": result(), "b": result("contains")}),
]


def said(cause):
    """Return what is raised and what is warned of."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            cause()
        except (ValueError, TypeError) as error:
            return [str(error)]
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(("shown", "cause"), list(zip(SHOWN, CAUSES, strict=True)))
def test_messages_are_printed_as_the_page_shows_them(shown, cause):
    """Of which `…` stands for what depends on the data."""
    pattern = ".+".join(re.escape(part) for part in shown.removesuffix("…").split("…"))
    assert any(re.match(pattern, message, re.DOTALL) for message in said(cause)), said(cause)
