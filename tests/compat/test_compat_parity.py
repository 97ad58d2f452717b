"""Numbers of krag itself, on inputs that do not touch its defects.

``krag_numbers.csv`` was made by krag 0.0.31 (from PyPI, with korouge-score 0.1.4, nltk 3.10.4,
Python 3.11) on ``krag_inputs.random_lists(seed)``: ``OfflineRetrievalEvaluators(actual,
predicted)`` for "text", ``RougeOfflineRetrievalEvaluators(actual, predicted, match_method=…,
threshold=…, tokenizer=TokenizerType.WHITESPACE)`` for the others, by embeddings where there is a
similarity threshold; then each ``calculate_*(k)``. "hit_partial" is the hit rate under
``MatchingCriteria.PARTIAL``. krag 0.0.32 gives the same, except the nDCG of "text", which stands
below.
"""

import csv
from pathlib import Path
from string import ascii_lowercase

import pytest
from krag_inputs import random_lists

from krag_eval import Conventions, MatchingCriteria
from krag_eval.compat.evaluators import (
    EmbeddingRougeOfflineRetrievalEvaluators,
    OfflineRetrievalEvaluators,
    RougeOfflineRetrievalEvaluators,
    TokenizerType,
)

_LINES = (Path(__file__).parent / "krag_numbers.csv").read_text("utf-8").splitlines()[1:]
_ROWS = list(csv.DictReader(_LINES))

#: (seed, k) -> nDCG of "text" in krag 0.0.32, whose ideal list holds all ground truth.
_KRAG_0_0_32_NDCG = {
    (1, 2): 0.0833333333333,
    (1, 10): 0.110424782892,
    (2, 2): 0.217762266064,
    (2, 10): 0.244934305731,
    (3, 2): 0.168148546734,
    (3, 10): 0.191978623506,
}


class _Letters:
    """An embedding model that counts letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in ascii_lowercase] for text in texts]


def _evaluator(row: dict[str, str]) -> OfflineRetrievalEvaluators:
    lists, method = random_lists(int(row["seed"])), row["evaluator"]
    if method == "text":
        return OfflineRetrievalEvaluators(*lists)
    threshold, tokenizer = float(row["threshold"]), TokenizerType.WHITESPACE
    if not row["similarity_threshold"]:
        return RougeOfflineRetrievalEvaluators(
            *lists, match_method=method, threshold=threshold, tokenizer=tokenizer
        )
    return EmbeddingRougeOfflineRetrievalEvaluators(
        *lists,
        match_method=method,
        similarity_threshold=float(row["similarity_threshold"]),
        rouge_threshold=threshold,
        embedding_type=_Letters(),
        tokenizer=tokenizer,
    )


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: "-".join(list(row.values())[:5]))
def test_numbers_are_those_of_krag(row: dict[str, str]) -> None:
    """All seven metrics, micro and macro, agree with krag 0.0.31, one by one and together.

    By embeddings, ROUGE counts only where these are alike; in two of the three runs that decides.
    """
    evaluator, k = _evaluator(row), int(row["k"])
    names = ("hit_rate", "mrr", "recall", "precision", "f1_score", "map", "ndcg")
    found: dict[str, float] = {}
    for name in names:
        found |= getattr(evaluator, f"calculate_{name}")(k)
    expected = {name: float(value) for name, value in list(row.items())[5:] if value}
    together = evaluator.evaluate(k).averages()
    assert together == pytest.approx({name: expected[name] for name in together}, abs=1e-9)
    if "hit_partial" in expected:
        evaluator.matching_criteria = MatchingCriteria.PARTIAL
        found["hit_partial"] = evaluator.calculate_hit_rate(k)["hit_rate"]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("seed", "k"), _KRAG_0_0_32_NDCG)
def test_the_ndcg_of_the_latest_krag_is_krag_evals_own(seed: int, k: int) -> None:
    """Since 0.0.32 krag puts all ground truth into the ideal list, as krag_eval's default does."""
    evaluator = OfflineRetrievalEvaluators(*random_lists(seed)).evaluator.with_conventions(
        Conventions()
    )
    assert evaluator.calculate_ndcg(k)["ndcg"] == pytest.approx(
        _KRAG_0_0_32_NDCG[seed, k], abs=1e-9
    )


# From the README of krag 0.0.32, whose nDCG of "text" is still that of 0.0.31.
_ACTUAL = [["This is the first document.", "This is the second document."]]
_PREDICTED = [["This is the last document.", "This is the second document."]]


def test_the_article_that_introduced_krag() -> None:
    """Its sample, to the last digit: micro F1 is 2 · p · r / (p + r) of 4/6 and 4/5 as floats."""
    names = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
    found = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]
    evaluator = OfflineRetrievalEvaluators(names, found)
    assert evaluator.calculate_f1_score(10) == {
        "micro_f1": 0.7272727272727272,
        "macro_f1": 0.7058823529411765,
    }
    # From counts it is 8/11, rounded once.
    assert evaluator.evaluator.calculate_f1_score(10)["micro_f1"] == 8 / 11
    assert evaluator.get_metrics_by_averaging_method(10).splitlines()[4] == (
        "F1 Score @10: {'micro_f1': 0.7272727272727272, 'macro_f1': 0.7058823529411765}"
    )


@pytest.mark.parametrize(
    ("method", "ndcg"), [("text", 0.6309297535714575), ("rouge2", 0.8651447273736845)]
)
def test_the_examples_of_krags_readme(method: str, ndcg: float) -> None:
    """Kiwi's tokens, micro averages and partial hits give what krag's README prints."""
    options = {"averaging_method": "micro", "matching_criteria": "partial"}
    evaluator = (
        OfflineRetrievalEvaluators(_ACTUAL, _PREDICTED, **options)
        if method == "text"
        else RougeOfflineRetrievalEvaluators(
            _ACTUAL, _PREDICTED, match_method=method, threshold=0.8, **options
        )
    )
    assert evaluator.get_metrics_by_averaging_method(2).splitlines() == [
        "Hit Rate @2: {'hit_rate': 1.0}",
        "MRR @2: {'mrr': 0.5}",
        "Recall @2: {'micro_recall': 0.5}",
        "Precision @2: {'micro_precision': 0.5}",
        "F1 Score @2: {'micro_f1': 0.5}",
        "MAP @2: {'map': 0.25}",
        f"NDCG @2: {{'ndcg': {ndcg}}}",
    ]


# The two below: krag 0.0.31 again. kiwipiepy 0.18.1, which krag pins, and 0.24.1 split these
# sentences alike.
_KOREAN = (
    [
        ["도서관은 오전 9시에 문을 엽니다.", "월요일은 쉽니다."],
        ["책은 4주 동안 빌릴 수 있습니다."],
    ],
    [
        ["주차장은 없습니다.", "도서관은 오전 10시에 문을 엽니다.", "월요일은 쉽니다."],
        ["책은 두 주 동안 빌릴 수 있습니다.", "주차장은 없습니다."],
    ],
)


@pytest.mark.parametrize(
    ("method", "k", "ndcg"),
    [
        ("rouge1", 1, 1.0),
        ("rouge1", 3, 0.9007231972),
        ("rouge2", 1, 0.5),
        ("rouge2", 3, 0.8296518545),
        ("rougeL", 1, 1.0),
        ("rougeL", 3, 0.9007231972),
    ],
)
def test_korean_numbers_are_those_of_krag(method: str, k: int, ndcg: float) -> None:
    """The default tokenizer, Kiwi's morphemes with their particles and punctuation."""
    evaluator = RougeOfflineRetrievalEvaluators(*_KOREAN, match_method=method, threshold=0.8)
    assert evaluator.calculate_map(k)["map"] == pytest.approx({1: 0.5, 3: 0.7916666667}[k])
    assert evaluator.calculate_ndcg(k)["ndcg"] == pytest.approx(ndcg)
