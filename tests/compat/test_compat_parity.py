"""Numbers of krag itself, on inputs that do not touch its defects.

Made by krag 0.0.31 (from PyPI, with korouge-score 0.1.4, nltk 3.10.4, Python 3.11) on
``krag_inputs.random_lists(seed)``: ``OfflineRetrievalEvaluators(actual, predicted)`` for "text",
``RougeOfflineRetrievalEvaluators(actual, predicted, match_method=…, threshold=0.8,
tokenizer=TokenizerType.WHITESPACE)`` for the others; then each ``calculate_*(k)``. krag 0.0.32
gives the same, except the nDCG of "text", which stands below.
"""

from __future__ import annotations

from string import ascii_lowercase

import pytest
from krag_inputs import random_lists

from krag_eval import Conventions
from krag_eval.compat.evaluators import (
    EmbeddingRougeOfflineRetrievalEvaluators,
    MatchingCriteria,
    OfflineRetrievalEvaluators,
    RougeOfflineRetrievalEvaluators,
    TokenizerType,
)

#: Names of the numbers below; "hit_partial" is the hit rate under MatchingCriteria.PARTIAL.
_NAMES = [
    "hit_partial",
    "hit_rate",
    "mrr",
    *("micro_recall", "macro_recall"),
    *("micro_precision", "macro_precision"),
    *("micro_f1", "macro_f1"),
    "map",
    "ndcg",
]

#: (match method, seed, k) -> krag's numbers, to 10 digits.
_KRAG = {
    ("text", 1, 2): (
        "0.1666666667 0 0.125 0.06666666667 0.04166666667 0.08695652174 "
        "0.08333333333 0.07547169811 0.05555555556 0.03125 0.1359108128"
    ),
    ("text", 1, 10): (
        "0.4166666667 0 0.1763888889 0.2 0.1388888889 0.1132075472 "
        "0.09189814815 0.1445783133 0.1106096066 0.05740740741 0.2234901351"
    ),
    ("text", 2, 2): (
        "0.3333333333 0.08333333333 0.2916666667 0.1333333333 0.1666666667 0.1739130435 "
        "0.2083333333 0.1509433962 0.1851851852 0.15625 0.3025774795"
    ),
    ("text", 2, 10): (
        "0.5 0.08333333333 0.3333333333 0.2666666667 0.2569444444 0.16 "
        "0.196031746 0.2 0.2223925634 0.1871527778 0.3635515793"
    ),
    ("text", 3, 2): (
        "0.25 0.1666666667 0.1666666667 0.1363636364 0.1944444444 0.15 "
        "0.125 0.1428571429 0.152173913 0.1388888889 0.1884882923"
    ),
    ("text", 3, 10): (
        "0.4166666667 0.1666666667 0.2111111111 0.2272727273 0.2430555556 0.1515151515 "
        "0.1388888889 0.1818181818 0.1767676768 0.1513888889 0.2623926929"
    ),
    ("rouge1", 1, 2): (
        "0.75 0.1666666667 0.625 0.3666666667 0.4375 0.4782608696 "
        "0.5 0.4150943396 0.4666666667 0.3715277778 0.9510760004"
    ),
    ("rouge1", 1, 10): (
        "0.9166666667 0.4166666667 0.6736111111 0.7333333333 0.7152777778 0.4150943396 "
        "0.468287037 0.5301204819 0.5660109307 0.5090277778 0.8915512523"
    ),
    ("rouge1", 2, 2): (
        "0.6666666667 0.1666666667 0.5833333333 0.4 0.4166666667 0.5217391304 "
        "0.5416666667 0.4528301887 0.4710144928 0.3611111111 0.9554455007"
    ),
    ("rouge1", 2, 10): (
        "0.8333333333 0.5833333333 0.625 0.8333333333 0.7430555556 0.5 "
        "0.5329365079 0.625 0.6206957618 0.5446924603 0.8899668237"
    ),
    ("rouge1", 3, 2): (
        "0.75 0.4166666667 0.5833333333 0.5454545455 0.5833333333 0.6 "
        "0.5 0.5714285714 0.5384615385 0.4444444444 0.7495911504"
    ),
    ("rouge1", 3, 10): (
        "0.75 0.5833333333 0.5833333333 0.7272727273 0.6805555556 0.4848484848 "
        "0.4055555556 0.5818181818 0.5082409775 0.5212962963 0.7520930162"
    ),
    ("rouge2", 1, 2): (
        "0.4166666667 0.08333333333 0.3333333333 0.2333333333 0.2430555556 0.3043478261 "
        "0.2916666667 0.2641509434 0.2651515152 0.1909722222 0.7410657717"
    ),
    ("rouge2", 1, 10): (
        "0.5833333333 0.1666666667 0.3638888889 0.4333333333 0.3819444444 0.2452830189 "
        "0.2219907407 0.313253012 0.2807855287 0.253587963 0.7793915298"
    ),
    ("rouge2", 2, 2): (
        "0.5833333333 0.1666666667 0.4583333333 0.2333333333 0.2986111111 0.3043478261 "
        "0.3333333333 0.2641509434 0.315018315 0.2326388889 0.7624378623"
    ),
    ("rouge2", 2, 10): (
        "0.5833333333 0.1666666667 0.4583333333 0.4 0.4097222222 0.24 "
        "0.2890873016 0.3 0.3389922077 0.2881944444 0.7499170778"
    ),
    ("rouge2", 3, 2): (
        "0.3333333333 0.1666666667 0.2083333333 0.1818181818 0.2222222222 0.2 "
        "0.1666666667 0.1904761905 0.1904761905 0.1527777778 0.6221743476"
    ),
    ("rouge2", 3, 10): (
        "0.4166666667 0.1666666667 0.2361111111 0.2727272727 0.2708333333 0.1818181818 "
        "0.1527777778 0.2181818182 0.1953551913 0.1708333333 0.6146653372"
    ),
    ("rougeL", 1, 2): (
        "0.75 0.1666666667 0.625 0.3666666667 0.4375 0.4782608696 "
        "0.5 0.4150943396 0.4666666667 0.3715277778 0.940496128"
    ),
    ("rougeL", 1, 10): (
        "0.9166666667 0.4166666667 0.6736111111 0.7333333333 0.7152777778 0.4150943396 "
        "0.468287037 0.5301204819 0.5660109307 0.5090277778 0.8712113788"
    ),
    ("rougeL", 2, 2): (
        "0.6666666667 0.1666666667 0.5833333333 0.4 0.4166666667 0.5217391304 "
        "0.5416666667 0.4528301887 0.4710144928 0.3611111111 0.9400176008"
    ),
    ("rougeL", 2, 10): (
        "0.8333333333 0.5833333333 0.625 0.8333333333 0.7430555556 0.5 "
        "0.5329365079 0.625 0.6206957618 0.5446924603 0.8859065582"
    ),
    ("rougeL", 3, 2): (
        "0.75 0.4166666667 0.5833333333 0.5454545455 0.5833333333 0.6 "
        "0.5 0.5714285714 0.5384615385 0.4444444444 0.7378174971"
    ),
    ("rougeL", 3, 10): (
        "0.75 0.5833333333 0.5833333333 0.7272727273 0.6805555556 0.4848484848 "
        "0.4055555556 0.5818181818 0.5082409775 0.5212962963 0.7438609667"
    ),
}

#: (seed, k) -> nDCG of "text" in krag 0.0.32, whose ideal list holds all ground truth.
_KRAG_0_0_32_NDCG = {
    (1, 2): 0.0833333333333,
    (1, 10): 0.110424782892,
    (2, 2): 0.217762266064,
    (2, 10): 0.244934305731,
    (3, 2): 0.168148546734,
    (3, 10): 0.191978623506,
}


def _evaluator(method: str, seed: int) -> OfflineRetrievalEvaluators:
    actual, predicted = random_lists(seed)
    if method == "text":
        return OfflineRetrievalEvaluators(actual, predicted)
    return RougeOfflineRetrievalEvaluators(
        actual,
        predicted,
        match_method=method,
        threshold=0.8,
        tokenizer=TokenizerType.WHITESPACE,
    )


@pytest.mark.parametrize(("method", "seed", "k"), _KRAG)
def test_numbers_are_those_of_krag(method: str, seed: int, k: int) -> None:
    """All seven metrics, micro and macro, agree with krag 0.0.31."""
    evaluator = _evaluator(method, seed)
    found = (
        evaluator.calculate_hit_rate(k)
        | evaluator.calculate_mrr(k)
        | evaluator.calculate_recall(k)
        | evaluator.calculate_precision(k)
        | evaluator.calculate_f1_score(k)
        | evaluator.calculate_map(k)
        | evaluator.calculate_ndcg(k)
    )
    evaluator.matching_criteria = MatchingCriteria.PARTIAL
    found["hit_partial"] = evaluator.calculate_hit_rate(k)["hit_rate"]
    expected = dict(zip(_NAMES, map(float, _KRAG[method, seed, k].split()), strict=True))
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("seed", "k"), _KRAG_0_0_32_NDCG)
def test_the_ndcg_of_the_latest_krag_is_krag_evals_own(seed: int, k: int) -> None:
    """Since 0.0.32 krag puts all ground truth into the ideal list, as krag_eval's default does."""
    evaluator = _evaluator("text", seed).evaluator.with_conventions(Conventions())
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


class _Letters:
    """An embedding model that counts letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in ascii_lowercase] for text in texts]


#: (seed, match method, similarity threshold, ROUGE threshold, k) -> krag's numbers.
_KRAG_EMBEDDING = {
    (1, "rouge1", 0.90, 0.8, 2): (
        "0.1666666667 0.625 0.3666666667 0.4375 0.4782608696 "
        "0.5 0.4150943396 0.4666666667 0.3715277778 0.8244458795"
    ),
    (2, "rouge2", 0.95, 0.6, 10): (
        "0.4166666667 0.5833333333 0.7 0.6597222222 0.42 "
        "0.483531746 0.525 0.558050349 0.4597222222 0.6506441843"
    ),
    (3, "rougeL", 0.97, 0.8, 10): (
        "0.5 0.5833333333 0.6818181818 0.6597222222 0.4545454545 "
        "0.3916666667 0.5454545455 0.4915235579 0.4952546296 0.6300244129"
    ),
}


@pytest.mark.parametrize(
    ("seed", "method", "similarity_threshold", "rouge_threshold", "k"), _KRAG_EMBEDDING
)
def test_numbers_by_embedding_are_those_of_krag(
    seed: int, method: str, similarity_threshold: float, rouge_threshold: float, k: int
) -> None:
    """ROUGE counts only where the embeddings are alike; in two of the three runs that decides."""
    evaluator = EmbeddingRougeOfflineRetrievalEvaluators(
        *random_lists(seed),
        match_method=method,
        similarity_threshold=similarity_threshold,
        rouge_threshold=rouge_threshold,
        embedding_type=_Letters(),
        tokenizer=TokenizerType.WHITESPACE,
    )
    numbers = _KRAG_EMBEDDING[seed, method, similarity_threshold, rouge_threshold, k]
    expected = dict(zip(_NAMES[1:], map(float, numbers.split()), strict=True))
    assert evaluator.evaluate(k).averages() == pytest.approx(expected, abs=1e-9)
