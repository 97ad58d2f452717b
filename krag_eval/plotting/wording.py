"""What stands in the pictures, in English and Korean."""

from __future__ import annotations

from typing import Literal, TypeAlias

from krag_eval._errors import unknown_name
from krag_eval._text import one_line
from krag_eval.scoring.cutoffs import spelled

__all__ = ["LANGUAGES", "Language", "checked_language", "cutoff_words", "metric_name", "word"]

#: A language that pictures and pages can be written in, ``"en"`` or ``"ko"``.
Language: TypeAlias = Literal["en", "ko"]

#: Every :data:`Language`.
LANGUAGES: tuple[Language, ...] = ("en", "ko")

# Columns of a name that somebody chose.
_WIDTH = 40

_NAMES: dict[Language, dict[str, str]] = {
    "en": {
        "hit_rate": "Hit rate",
        "precision": "Precision",
        "recall": "Recall",
        "f1": "F1",
        "mrr": "MRR",
        "map": "MAP",
        "ndcg": "nDCG",
        "mean_rank": "Mean rank",
        "found_rate": "Found rate",
        "rejection_rate": "Rejection rate",
        "micro": "Micro {}",
        "macro": "Macro {}",
    },
    "ko": {
        "hit_rate": "Hit rate",
        "precision": "정밀도",
        "recall": "재현율",
        "f1": "F1",
        "mrr": "MRR",
        "map": "MAP",
        "ndcg": "nDCG",
        "mean_rank": "평균 순위",
        "found_rate": "찾은 질의 비율",
        "rejection_rate": "올바른 무응답 비율",
        "micro": "{}(micro)",
        "macro": "{}(macro)",
    },
}

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "micro": "Micro (pooled)",
        "macro": "Macro (mean)",
        "metrics": "Retrieval metrics {cutoff} ({queries})",
        "cutoff": "at k = {}",
        "no cutoff": "over all retrieved documents",
        "queries": "{} queries",
        "one query": "1 query",
        "skipped": "{}, {} skipped",
        "nothing found": "No query found a relevant document",
        "first found": "First relevant document: mean rank {:.2f}, found rate {}",
        "rejected": "Nothing retrieved where nothing should be: {}",
        "against k": "Metrics against k ({queries})",
        "k": "Cutoff k",
        "all": "all",
        "rank": "Mean rank (lower is better)",
        "against threshold": "Metrics against the threshold",
        "threshold": "Similarity from which a pair is a match (threshold)",
        "in use": "Threshold in use: {:.4g}",
        "per query": "{metric} query by query ({queries})",
        "number of queries": "Queries",
        "value": "{metric} of a query",
        "exactly": "exactly",
        "undefined": "{}, {} undefined",
        "first ranks": "Where ground truth is first found ({} items)",
        "one item": "Where ground truth is first found (1 item)",
        "first rank": "Rank of the first document that covers the item",
        "items": "Items",
        "never": "never",
        "differences": "Differences between systems ({queries})",
        "difference of": "{pair} ({queries})",
        "forest axis": "Difference and its {} interval",
        "forest axis rank": "Difference in mean rank and its {} interval; lower is better",
        "markers": "filled: difference shown; hollow: no difference shown",
        "first": "first-named",
        "second": "second-named",
        "is better": "{} better",
        "percent": "{} %",
    },
    "ko": {
        "micro": "Micro 평균(전체 합산)",
        "macro": "Macro 평균(질의별 평균)",
        "metrics": "검색 지표, {cutoff} ({queries})",
        "cutoff": "k = {}",
        "no cutoff": "검색된 문서 전체",
        "queries": "질의 {}개",
        "one query": "질의 1개",
        "skipped": "{}, 제외 {}개",
        "nothing found": "관련 문서를 찾은 질의가 없습니다",
        "first found": "첫 관련 문서: 평균 순위 {:.2f}, 찾은 질의 비율 {}",
        "rejected": "정답이 없는 질의에 아무것도 내놓지 않은 비율: {}",
        "against k": "k에 따른 지표 ({queries})",
        "k": "컷오프 k",
        "all": "전체",
        "rank": "평균 순위(낮을수록 좋음)",
        "against threshold": "임계값에 따른 지표",
        "threshold": "임계값(유사도가 이 값 이상이면 일치)",
        "in use": "사용한 임계값: {:.4g}",
        "per query": "질의별 {metric} 분포 ({queries})",
        "number of queries": "질의 수",
        "value": "질의 하나의 {metric}",
        "exactly": "정확히",
        "undefined": "{}, 값 없음 {}개",
        "first ranks": "정답 항목을 처음 찾은 순위 (항목 {}개)",
        "one item": "정답 항목을 처음 찾은 순위 (항목 1개)",
        "first rank": "항목을 처음으로 찾은 문서의 순위",
        "items": "항목 수",
        "never": "못 찾음",
        "differences": "시스템 간 차이 ({queries})",
        "difference of": "{pair} ({queries})",
        "forest axis": "차이와 {} 신뢰구간",
        "forest axis rank": "평균 순위의 차이와 {} 신뢰구간(낮을수록 좋음)",
        "markers": "채운 점: 차이가 확인됨, 빈 점: 차이가 확인되지 않음",
        "first": "앞에 적힌 쪽",
        "second": "뒤에 적힌 쪽",
        "is better": "{} 우세",
        "percent": "{}%",
    },
}


def checked_language(language: str) -> Language:
    """Return the language, or refuse it.

    Raises:
        ValueError: If it is not one of those there are.
    """
    for known in LANGUAGES:
        if language == known:
            return known
    raise ValueError(unknown_name("language", language, LANGUAGES))


def word(key: str, language: Language) -> str:
    """Return a phrase; what is to be filled in stands in braces."""
    return _WORDS[language][key]


def metric_name(key: str, language: Language) -> str:
    """Return the name of an average for people; one that is not built in keeps its own.

    >>> metric_name("macro_recall", "en"), metric_name("recall", "ko"), metric_name("mine", "en")
    ('Macro recall', '재현율', 'mine')
    """
    names = _NAMES[language]
    average, _, rest = key.partition("_")
    if average in ("micro", "macro") and rest in names:
        name = names[rest]
        return names[average].format(name if name.isupper() else name.lower())
    return names.get(key) or one_line(key, _WIDTH)


def cutoff_words(k: int | None, language: Language) -> str:
    """Return "at k = 5" in the language."""
    if k is None:
        return word("no cutoff", language)
    return word("cutoff", language).format(spelled(k))
