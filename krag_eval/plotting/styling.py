"""What all plots share: colours, axes, legends, rounded numbers, words in both languages, files."""

from __future__ import annotations

import io
import math
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from xml.sax.saxutils import escape

from krag_eval._io import naming
from krag_eval._language import Language, language_of, spoken
from krag_eval._text import fitted, width_of
from krag_eval.errors import InvalidInput, InvalidType, clipped, one_of, warn
from krag_eval.scoring.averages import DEFINED, Average
from krag_eval.scoring.cutoffs import Budget, Cutoff, parse_metric
from krag_eval.scoring.metrics import METRICS, averages_of, label_of, metrics_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.slices import SlicedComparison, Slices

INK, PAPER = "#000000", "#ffffff"
#: What is not certain, or not about any system or metric.
FAINT = "#767676"
#: How a query or an item came out. No metric and no system has these colours.
FOUND, PARTIAL, MISSED = "#009e73", "#b97a00", "#d55e00"
#: The sides of a comparison, dark enough for text.
BETTER, WORSE = "#0072b2", "#b3320f"


class Look(NamedTuple):
    """How a line is drawn, so that it can be told apart without colour too."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"
    hollow: bool = False


# Name -> the colour for white paper, the one for dark paper, marker and dashes. Of the metrics, the
# first seven, which are drawn together most, are the furthest apart with any colour vision.
_METRICS: Mapping[str, tuple[str, str, str, str]] = {
    "recall": ("#14489a", "#699efc", "o", "-"),
    "precision": ("#962a55", "#f482a6", "s", "--"),
    "ndcg": ("#7424f5", "#9a3cf5", "D", "-"),
    "reciprocal_rank": ("#4796cf", "#a7d6fc", "^", "-."),
    "average_precision": ("#0e0e0d", "#eeeae9", "v", ":"),
    "hit_rate": ("#8b8888", "#76736f", "X", "--"),
    "f1": ("#4a1a52", "#a264a0", "P", "-."),
    "token_recall": ("#4166ad", "#a0b4f1", "<", "-"),
    "token_precision": ("#9c678f", "#db90c9", ">", "--"),
    "token_iou": ("#8371e5", "#7f68c1", "p", "-."),
    "redundancy": ("#082d2c", "#2f8290", "h", ":"),
    "success": ("#6e6b6b", "#868483", "d", "-"),
    "r_precision": ("#b04fc0", "#b37dcb", "*", "--"),
    "rbp": ("#505863", "#c4c5ca", "8", "-."),
    "rank": ("#3d5a80", "#8fb3dd", "H", "-"),
    "judged": ("#727e00", "#e8f280", "o", ":"),
    "bpref": ("#06098f", "#895ff0", "s", "-."),
    "infap": ("#4f100c", "#b4685e", "^", "-"),
    "precision_upper": ("#f60298", "#fe0898", "D", ":"),
    "rbp_residual": ("#045f8a", "#52b0dd", "v", "-."),
    "aspect_recall": ("#f213f0", "#f924f5", "<", "--"),
    "alpha_ndcg": ("#7b4b94", "#c49be0", ">", "-"),
}
_SYSTEMS: Mapping[str, tuple[str, str, str, str]] = {
    "system-1": ("#2e91ef", "#4c92f9", "o", "-"),
    "system-2": ("#7f4503", "#f2be5f", "s", "--"),
    "system-3": ("#2c7c5e", "#247a61", "^", "-."),
    "system-4": ("#f26701", "#c3370a", "D", "-"),
    "system-5": ("#b27f9f", "#ad7ea0", "v", "--"),
    "system-6": ("#204763", "#9ad1fd", "P", "-."),
    "system-7": (INK, PAPER, "X", ":"),
}
_OTHERS = {
    "better": (BETTER, "#4aa8ea"),
    "worse": (WORSE, "#ff8f4d"),
    "unsure": (FAINT, "#8d939c"),
    "grid": ("#b0b0b0", "#8d939c"),
}
#: How one system after the other is drawn.
LINES = tuple(Look(light, marker, dashes) for light, _, marker, dashes in _SYSTEMS.values())
#: Lines that can be told apart in one picture.
MOST_LINES = len(LINES)
# How metrics of the user's own are: in no colour of a metric or of a status.
_OWN = (LINES[1], LINES[5], LINES[4], LINES[0])
#: Colour -> its name in the CSS of a page, and what it is on dark paper. Those of ink, paper and
#: status are the page's.
ON_DARK: Mapping[str, tuple[str, str]] = {
    light: (f"--c-{name.replace('_', '-')}", dark)
    for name, (light, dark, *_) in {**_METRICS, **_SYSTEMS, **_OTHERS}.items()
    if light != INK
}
# Of lines in one colour, as recall at several cutoffs, each has others of these.
_DASHES = ("-", "--", "-.", ":", (0, (10, 2)), (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)))


SIZE = (7.0, 5.0)
# Where a line may end: not within "k = 5".
_SPACES = re.compile("(?<!=) (?!=)")
# Width of a column of text, in sizes of its font.
_EM = 0.52


def looks_of(averages: Iterable[str]) -> list[Look]:
    """Return how to draw each average: in the colour of its metric, whatever else is drawn.

    Micro averages are hollow. Lines of one metric differ in dashes.

    >>> [one.colour for one in looks_of(["ndcg@5", "recall", "micro_recall", "macro_recall@5"])]
    ['#7424f5', '#14489a', '#14489a', '#14489a']
    >>> [one.hollow for one in looks_of(["macro_recall", "micro_recall"])]
    [False, True]
    """
    looks: list[Look] = []
    for average in averages:
        look = _look_of(average, looks)
        start, taken = _DASHES.index(look.dashes), {(one.colour, one.dashes) for one in looks}
        start += look.hollow
        turns = [_DASHES[(start + turn) % len(_DASHES)] for turn in range(len(_DASHES))]
        free = (dashes for dashes in turns if (look.colour, dashes) not in taken)
        looks.append(look._replace(dashes=next(free, turns[0])))
    return looks


def _look_of(average: str, others: Sequence[Look]) -> Look:
    """Return the look of a metric; of one without, one that no other line has, if possible."""
    key = average.partition("@")[0].partition("(")[0]
    known = averages_of(METRICS.values()).get(key)
    name = key if known is None else known.column.removeprefix(DEFINED)
    if name in _METRICS:
        light, _, marker, dashes = _METRICS[name]
        return Look(light, marker, dashes, hollow=key == f"micro_{name}")
    first = zlib.crc32(key.encode()) % len(_OWN)
    turns = [*_OWN[first:], *_OWN[:first]]
    colours = {one.colour for one in others}
    return next((look for look in turns if look.colour not in colours), turns[0])


def new_axes(width: float = SIZE[0], height: float = SIZE[1]) -> Axes:
    """Return the axes of a new pyplot figure, of so many inches."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def value_label(value: float) -> str:
    """Round to two digits, but never to a 0 or 1 that the value is not.

    >>> value_label(0.0), value_label(0.001), value_label(0.456), value_label(0.999)
    ('0.00', '<0.01', '0.46', '>0.99')
    """
    if math.isnan(value):
        return "n/a"
    rounded = f"{value:.2f}"
    if rounded == "0.00" and value > 0:
        return "<0.01"
    return ">0.99" if rounded == "1.00" and value < 1 else rounded


def percent(level: float, language: Language = "en") -> str:
    """Return a level as it is spoken of.

    >>> percent(0.95), percent(0.999), percent(0.95, "ko")
    ('95 %', '99.9 %', '95%')
    """
    return word("percent", language).format(f"{100 * level:.10g}")


def draw_score_axis(ax: Axes, values: Sequence[float], axis: str = "x") -> None:
    """Let an axis run from 0 to 1, further if a value does, with room for labels."""
    finite = [value for value in values if math.isfinite(value)]
    lowest, highest = min([0.0, *finite]), max([1.0, *finite])
    room = 0.08 * (highest - lowest) * (1.0 if axis == "x" else 0.4)
    limits = lowest - room * (lowest < 0), highest + room
    ax.set(**{f"{axis}lim": limits})
    if (lowest, highest) == (0.0, 1.0):
        ax.set(**{f"{axis}ticks": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]})
    finish(ax, axis)


def finish(ax: Axes, grid: str) -> None:
    """Leave out what says nothing, and draw a light grid along the axis of values."""
    ax.grid(axis=grid, alpha=0.3)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if grid == "x":
        ax.tick_params(axis="y", length=0)


def legend_above(ax: Axes, columns: int = 2, handles: Sequence[Any] | None = None) -> None:
    """Put the legend between title and axes, where it covers nothing."""
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.8,
        columnspacing=1.5,
    )


def queries_of(result: EvaluationResult, language: Language) -> str:
    """Say how many queries count, how many do not, and how many failed."""
    counted = result.n_counted
    words = number_of_queries(counted, language)
    for kind, n in (("skipped", result.n_queries - counted), ("failed", result.n_failed)):
        words = word(kind, language).format(words, n) if n else words
    return words


def number_of_queries(number: int, language: Language) -> str:
    """Say "1 query" or "5 queries"."""
    return word("one query" if number == 1 else "queries", language).format(number)


# Columns of a name that the user chose.
_WIDTH = 40

_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "micro": "Micro (pooled)",
        "macro": "Macro (mean)",
        "metrics": "Retrieval metrics {cutoff} ({queries})",
        "at cutoff": "{} {}",
        "cutoff": "at k = {}",
        "budget w": "within {:,} words",
        "budget c": "within {:,} characters",
        "budget t": "within {:,} units of length",
        "no cutoff": "over all retrieved documents",
        "queries": "{} queries",
        "one query": "1 query",
        "no font": "{} {}, which will appear as empty boxes.",
        "install a font": 'Install a Korean font ("apt-get install fonts-nanum" or '
        '"fonts-noto-cjk" on Debian, Ubuntu and Colab; Malgun Gothic comes with Windows, Apple SD '
        "Gothic Neo with macOS) and draw again",
        "skipped": "{}, {} skipped",
        "failed": "{}, {} failed",
        "nothing found": "No query found a relevant document",
        "first found": "First relevant document: mean rank {:.2f}, found rate {}",
        "rejected": "Nothing retrieved where nothing should be: {}",
        "against k": "Metrics against k ({queries})",
        "against budgets": "Metrics against the budget ({queries})",
        "against budget": "{metric} against the budget ({queries})",
        "average against k": "{metric} against k ({queries})",
        "against latency": "{metric} {cutoff} against latency ({queries})",
        "latency s": "Seconds per query: the median, and a line to the 95th percentile",
        "latency ms": "Milliseconds per query: the median, and a line to the 95th percentile",
        "against context": "{metric} {cutoff} against context ({queries})",
        "cost context": "Words of context per query",
        "cost latency s": "Seconds per query, the median",
        "cost latency ms": "Milliseconds per query, the median",
        "not measured": "not measured: {}",
        "k": "Cutoff k",
        "budgets": "Budget",
        "budget tick w": "{:,}\nwords",
        "budget tick c": "{:,}\ncharacters",
        "budget tick t": "{:,}\nunits",
        "in w": "Budget in words",
        "in c": "Budget in characters",
        "in t": "Budget, measured by {length}",
        "all": "all",
        "lower is better": "{} (lower is better)",
        "against threshold": "Metrics against the threshold",
        "against threshold at": "Metrics {cutoff} against the threshold",
        "threshold": "Similarity from which a pair is a match (threshold)",
        "in use": "Threshold in use: {:.4g}",
        "threshold alone": "Threshold",
        "best threshold": "Best threshold {:.2f}",
        "separates": "Separates all pairs",
        "interval": "{} interval",
        "decision": "Decision of {matcher} on {pairs} pairs",
        "per query": "{metric} {cutoff}, query by query ({queries})",
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
        "forest axis lower": "Difference in {name} and its {} interval; lower is better",
        "markers": "filled: difference shown; hollow: no difference shown",
        "first": "first-named",
        "second": "second-named",
        "is better": "{} better",
        "sliced": "{metric} by {tag} ({queries})",
        "slice values": "{name} and its {} interval; dashed: all queries",
        "slice differences": "Difference in {name} and its {} interval",
        "slice markers": "filled: difference shown (blue better, red worse); hollow: not shown",
        "too few": "{}: too few",
        "more slices": "and {} more rows, which are not drawn",
        "tag items": "number of ground-truth items",
        "tag question_length": "words of the question",
        "tag golden_length": "words of the longest ground-truth item",
        "tag language": "language of the question",
        "tag diagnosis": "diagnosis",
        "language Korean": "Korean",
        "language Japanese": "Japanese",
        "language Han script": "Han script",
        "language Latin script": "Latin script",
        "cause found": "found",
        "cause found_in_pieces": "found in pieces",
        "cause ranked_too_low": "ranked too low",
        "cause not_retrieved": "in the index, not retrieved",
        "cause not_in_top_k": "in the index, not in the first k",
        "cause cut_apart": "cut apart by the splitter",
        "cause not_in_index": "not in the index",
        "cause not_seen": "missed, not looked for",
        "cause no_words": "without words",
        "percent": "{} %",
        "planning": "What can be shown on {metric} (power {power}, alpha {alpha})",
        "number of questions": "Questions",
        "detectable": "Smallest difference that can be shown",
        "pilot shows": "Pilot: {difference} with {questions:,} questions",
        "plan takes": "Plan: {difference} with {questions:,} questions",
        "over runs": "Metrics from run to run ({runs})",
        "over runs at": "Metrics {cutoff} from run to run ({runs})",
        "number of runs": "{} runs",
        "one run": "1 run",
        "runs": "When the run was made",
        "runs apart": "When the run was made; dotted: cannot be compared across",
        "waterfall": "What recall would be, {cutoff} ({items} items)",
        "share of items": "Share of ground-truth items (in brackets: recall by then)",
    },
    "ko": {
        "no font": "{}({}). 그림에 빈 네모로 나옵니다.",
        "install a font": '한글 글꼴을 설치하고 다시 그리세요(Debian, Ubuntu, Colab에서는 "apt-get '
        'install fonts-nanum"이나 "fonts-noto-cjk". Windows에는 맑은 고딕, macOS에는 Apple SD '
        "산돌고딕 Neo가 들어 있습니다)",
        "micro": "Micro 평균(전체 합산)",
        "macro": "Macro 평균(질문별 평균)",
        "metrics": "검색 지표, {cutoff} ({queries})",
        "at cutoff": "{}, {}",
        "cutoff": "k = {}",
        "budget w": "{:,}단어 이내",
        "budget c": "{:,}자 이내",
        "budget t": "길이 {:,} 이내",
        "no cutoff": "검색된 문서 전체",
        "queries": "질문 {}개",
        "one query": "질문 1개",
        "skipped": "{}, 제외 {}개",
        "failed": "{}, 검색 실패 {}개",
        "nothing found": "관련 문서를 찾은 질문이 없습니다",
        "first found": "첫 관련 문서: 평균 순위 {:.2f}, 찾은 질문 비율 {}",
        "rejected": "정답이 없는 질문에 빈 결과를 돌려준 비율: {}",
        "against k": "k에 따른 지표 ({queries})",
        "against budgets": "예산에 따른 지표 ({queries})",
        "against budget": "예산에 따른 {metric} ({queries})",
        "average against k": "k에 따른 {metric} ({queries})",
        "against latency": "지연 시간에 따른 {metric}, {cutoff} ({queries})",
        "latency s": "질문당 지연 시간(초): 점은 중앙값, 선은 95번째 백분위수까지",
        "latency ms": "질문당 지연 시간(밀리초): 점은 중앙값, 선은 95번째 백분위수까지",
        "against context": "컨텍스트 양에 따른 {metric}, {cutoff} ({queries})",
        "cost context": "질문당 컨텍스트의 단어 수",
        "cost latency s": "질문당 지연 시간(초)의 중앙값",
        "cost latency ms": "질문당 지연 시간(밀리초)의 중앙값",
        "not measured": "측정하지 않음: {}",
        "k": "컷오프 k",
        "budgets": "예산",
        "budget tick w": "{:,}단어",
        "budget tick c": "{:,}자",
        "budget tick t": "길이 {:,}",
        "in w": "예산(단어 수)",
        "in c": "예산(글자 수)",
        "in t": "예산({length} 기준)",
        "all": "전체",
        "lower is better": "{}(낮을수록 좋음)",
        "against threshold": "임계값에 따른 지표",
        "against threshold at": "임계값에 따른 지표, {cutoff}",
        "threshold": "임계값(유사도가 이 값 이상이면 일치)",
        "in use": "사용한 임계값: {:.4g}",
        "threshold alone": "임계값",
        "best threshold": "최적 임계값 {:.2f}",
        "separates": "모든 쌍을 가르는 임계값",
        "interval": "{} 신뢰구간",
        "decision": "{matcher}의 판정과 라벨 비교({pairs}쌍)",
        "per query": "질문별 {metric} 분포, {cutoff} ({queries})",
        "number of queries": "질문 수",
        "value": "질문 하나의 {metric}",
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
        "forest axis lower": "{name}의 차이와 {} 신뢰구간(낮을수록 좋음)",
        "markers": "채운 점: 차이 확인됨, 빈 점: 확인되지 않음",
        "first": "앞 시스템",
        "second": "뒤 시스템",
        "is better": "{} 우세",
        "sliced": "{tag}별 {metric} ({queries})",
        "slice values": "{name}, {} 신뢰구간(점선: 전체 질문)",
        "slice differences": "{name}의 차이와 {} 신뢰구간",
        "slice markers": "채운 점: 차이 확인됨(파랑 우세, 빨강 열세), 빈 점: 확인되지 않음",
        "too few": "{}: 질문 수 부족",
        "more slices": "그 외 {}개는 생략했습니다",
        "tag items": "정답 항목 수",
        "tag question_length": "질문의 단어 수",
        "tag golden_length": "가장 긴 정답의 단어 수",
        "tag language": "질문의 언어",
        "tag diagnosis": "진단",
        "language Korean": "한국어",
        "language Japanese": "일본어",
        "language Han script": "한자",
        "language Latin script": "로마자",
        "cause found": "찾음",
        "cause found_in_pieces": "조각으로만 검색됨",
        "cause ranked_too_low": "순위가 낮음",
        "cause not_retrieved": "색인에 있으나 검색되지 않음",
        "cause not_in_top_k": "색인에 있으나 상위 k개에 없음",
        "cause cut_apart": "청크 경계에서 잘림",
        "cause not_in_index": "색인에 없음",
        "cause not_seen": "놓침(원인 미확인)",
        "cause no_words": "단어가 없는 정답",
        "percent": "{}%",
        "planning": "{metric}에서 확인할 수 있는 차이 (검정력 {power}, 유의수준 {alpha})",
        "number of questions": "질문 수",
        "detectable": "확인할 수 있는 가장 작은 차이",
        "pilot shows": "파일럿: 질문 {questions:,}개로 {difference}",
        "plan takes": "계획: 질문 {questions:,}개로 {difference}",
        "over runs": "실행별 지표 ({runs})",
        "over runs at": "실행별 지표, {cutoff} ({runs})",
        "number of runs": "실행 {}회",
        "one run": "실행 1회",
        "runs": "평가 시각",
        "runs apart": "평가 시각(점선 앞뒤의 실행은 서로 비교할 수 없음)",
        "waterfall": "원인을 하나씩 해결했을 때의 재현율, {cutoff} (항목 {items}개)",
        "share of items": "정답 항목 비율(괄호 안은 누적 재현율)",
    },
}


def check_alone(argument: str, given: object, instead: str) -> None:
    """Refuse several results where a picture shows one.

    Args:
        argument: The argument that holds them.
        given: What was given.
        instead: What to call for several.

    Raises:
        InvalidType: If these are several.
    """
    if isinstance(given, Mapping | list | tuple):
        problem = f"must be one result, got a {type(given).__name__} of {len(given)}"
        raise InvalidType(argument, problem, instead)


def queries_of_all(systems: Mapping[str, EvaluationResult], language: Language) -> str:
    """Return how many queries each has, said once where all have as many."""
    return " / ".join(dict.fromkeys(queries_of(one, language) for one in systems.values()))


def systems_of(
    results: EvaluationResult | Mapping[str, EvaluationResult], argument: str = "results"
) -> Mapping[str, EvaluationResult]:
    """Return what to draw by name; a result alone has none.

    Raises:
        InvalidType: If it is something else.
        InvalidInput: If there are none, or more than can be told apart.
    """
    from krag_eval.results.result import EvaluationResult

    if isinstance(results, EvaluationResult):
        return {"": results}
    if not isinstance(results, Mapping) or not all(
        isinstance(name, str) and isinstance(one, EvaluationResult) for name, one in results.items()
    ):
        allowed = "must be an EvaluationResult, or map names to such results"
        raise InvalidType(argument, f"{allowed}, got {clipped(results)}")
    if not 1 <= len(results) <= MOST_LINES:
        raise InvalidInput(
            argument,
            f"must be 1 to {MOST_LINES} systems (more cannot be told apart), got {len(results)}",
        )
    return results


def intervals_of(
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None,
    systems: Mapping[str, EvaluationResult],
) -> Mapping[str, pd.DataFrame]:
    """Return the intervals of each system that has any."""
    if intervals is None:
        return {}
    if "" in systems and not isinstance(intervals, Mapping):
        return {"": intervals}
    if not isinstance(intervals, Mapping):
        raise InvalidType(
            "intervals", f"must map the names of results to tables, got {clipped(intervals)}"
        )
    for name in intervals:
        one_of("intervals", name, list(systems))
    return intervals


def word(key: str, language: Language) -> str:
    """Return a phrase, with braces where something is to be filled in."""
    return _WORDS[language][key]


def tag_name(slices: Slices | SlicedComparison, language: Language, columns: int) -> str:
    """Return what a tag is called: a built-in one has a label, others are cut to fit."""
    return word(f"tag {slices.tag}", language) if slices.about else fitted(slices.tag, columns)


_Sliced = TypeVar("_Sliced", bound="Slices | SlicedComparison")


def labelled(slices: _Sliced, language: Language) -> _Sliced:
    """Return slices by a built-in tag with the labels of its values; others as they are."""
    if not slices.about:
        return slices
    known, unlabelled = _WORDS[language], cast("Any", slices)
    kind = "cause" if slices.tag == "diagnosis" else slices.tag
    rows = [replace(one, slice=known.get(f"{kind} {one.slice}", one.slice)) for one in slices.rows]
    return cast("_Sliced", replace(unlabelled, rows=tuple(rows)))


@spoken
def metric_name(key: str, language: Language, result: EvaluationResult | None = None) -> str:
    """Return the name of an average for people; one without a label keeps its own.

    Args:
        key: The average, or the metric.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        result: The result it is from, which knows the labels of metrics of your own.

    >>> metric_name("macro_recall", "en"), metric_name("recall", "ko"), metric_name("mine", "en")
    ('Macro recall', '재현율', 'mine')
    """
    metrics = METRICS
    if result is not None:
        metrics = metrics_of(result.keys, result.declared, result.criteria)
    return fitted(label_of(key, metrics) or key, _WIDTH)


def average_name(average: str, language: Language, result: EvaluationResult | None = None) -> str:
    """Return the name of an average at its cutoff; what has no cutoff is no average.

    >>> average_name("macro_recall@10", "en"), average_name("ndcg@1000w", "ko")
    ('Macro recall at k = 10', 'nDCG, 1,000단어 이내')
    """
    try:
        key, k = parse_metric(average)
    except InvalidInput:
        return fitted(average, _WIDTH)
    return at_cutoff(metric_name(key, language, result), k, language)


def at_cutoff(name: str, k: Cutoff, language: Language) -> str:
    """Return what is called so with its cutoff behind it."""
    return word("at cutoff", language).format(name, cutoff_words(k, language))


def with_direction(
    name: str, average: Average | None, language: Language, *, lines: int = 1
) -> str:
    """Return the name of an average, with a word, or a line below it, where lower is better."""
    if average is None or not average.lower_is_better:
        return name
    told = word("lower is better", language)
    return told.format(name) if lines == 1 else f"{name}\n{told.format('').strip()}"


def cutoff_words(k: Cutoff, language: Language) -> str:
    """Return a cutoff within a title.

    >>> cutoff_words(5, "en"), cutoff_words(Budget(1000, "w"), "en")
    ('at k = 5', 'within 1,000 words')
    """
    if isinstance(k, Budget):
        return word(f"budget {k.unit}", language).format(k.amount)
    return word("no cutoff" if k is None else "cutoff", language).format(k)


# Of a collection file matplotlib sees the first font alone, which in Noto's is the Japanese one; it
# has all of Hangul too, as those of other regions have.
_REGIONS = ("JP", "SC", "TC", "HK")

#: Fonts with Hangul, best first.
KOREAN_FONTS = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "NanumGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleSDGothicNeo",
    "AppleGothic",
    "Pretendard",
    "Pretendard Variable",
    "NanumBarunGothic",
    "NanumSquare",
    "NanumSquareRound",
    *(f"Noto Sans CJK {region}" for region in _REGIONS),
    "Noto Serif CJK KR",
    "Noto Serif KR",
    *(f"Noto Serif CJK {region}" for region in _REGIONS),
)

#: How the warning begins.
NO_KOREAN_FONT: Mapping[Language, str] = {
    "en": "No installed font can show",
    "ko": "설치된 글꼴로는 표시할 수 없는 글자가 있습니다",
}

_FILES = re.compile(
    r"(Noto(Sans|Serif)(CJK(kr|jp|sc|tc|hk)?-(VF|Regular)|KR)|Nanum(Gothic|BarunGothic|Square)|"
    r"malgun|AppleSDGothicNeo|AppleGothic|Pretendard)"
    r".*\.(ttf|otf|ttc)$",
    re.IGNORECASE,
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def make_readable(ax: Axes) -> None:
    """Let texts be seen whole: a font for Hangul, lines for what is wider than the picture.

    No name is taken for a formula. Where no font has Hangul, matplotlib's own warnings, one for
    every letter, are kept back from then on.

    Warns:
        KragEvalWarning: If no installed font has the letters.
    """
    from matplotlib.text import Text

    texts = [one for one in ax.findobj(Text) if isinstance(one, Text)]
    _fold_names(ax, texts)
    lacking: dict[Any, set[str]] = {}
    for text in texts:
        text.set_parse_math(False)  # a "$" in a name is a dollar sign
        letters = _without_glyph(_HANGUL.findall(text.get_text()), text.get_fontfamily())
        if letters:
            lacking[text] = letters
    families = _families(list(lacking.values()))
    for text, letters in list(lacking.items()):
        if family := _covering(letters, families):
            text.set_fontfamily([*text.get_fontfamily(), family])
            del lacking[text]
    if lacking:
        _warn(set().union(*lacking.values()))


def _families(several: Sequence[set[str]]) -> list[str]:
    """Return the fonts to choose from for texts of these letters: those in matplotlib's list.

    Where they do not do, those installed since are added before any is chosen: the next picture,
    which finds them in the list, is to look the same.
    """
    families = _known() if several else []
    if all(_covering(letters, families) for letters in several):
        return families
    return _installed_since()


def _covering(letters: set[str], families: Iterable[str]) -> str | None:
    """Return the first font that has all of the letters."""
    return next((one for one in families if not _without_glyph(letters, [one])), None)


def _fold_names(ax: Axes, texts: Iterable[Text]) -> None:
    """Break the title and the name of the axis below into lines that fit beside the labels.

    matplotlib wraps texts too, but not before it knows the layout, which depends on them.
    """
    labels = [label.get_text() for label in ax.get_yticklabels()]
    lines = [line for label in labels for line in label.split("\n")]
    beside = _EM * 10 * max(map(width_of, lines), default=0) + (20 if ax.get_ylabel() else 0) + 12
    # Before the layout is known, an axes takes 0.775 of its share of the figure.
    room = 72 * ax.bbox.width / ax.figure.dpi / 0.775 - beside
    shown = {ax.get_title(loc="left"), ax.get_xlabel()}
    for text in [one for one in texts if one.get_text() in shown]:
        text.set_text(_folded(text.get_text(), room / (float(text.get_fontsize()) * _EM)))


def _folded(text: str, width: float) -> str:
    r"""Break lines that are wider than so many columns: before a bracket if that does, or anywhere.

    >>> _folded("Macro recall at k = 5 (28 queries)", 22), _folded("Macro recall at k = 5", 18)
    ('Macro recall at k = 5\n(28 queries)', 'Macro recall at\nk = 5')
    """
    lines: list[str] = []
    for line in text.split("\n"):
        head, bracket, rest = line.rpartition(" (")
        if width_of(line) <= width:
            lines.append(line)
        elif bracket and max(width_of(head), width_of(rest) + 1) <= width:
            lines += [head, f"({rest}"]
        else:
            lines += _filled(_SPACES.split(line), width)
    return "\n".join(lines)


def _filled(words: Iterable[str], width: float) -> list[str]:
    lines: list[str] = []
    for one in words:
        if lines and width_of(f"{lines[-1]} {one}") <= width:
            lines[-1] += f" {one}"
        else:
            lines.append(one)
    return lines


def _warn(letters: set[str]) -> None:
    shown = "".join(sorted(letters)[:6]) + ("…" if len(letters) > 6 else "")
    language = language_of()
    w = _WORDS[language]
    warn(w["no font"].format(NO_KOREAN_FONT[language], shown), w["install a font"])
    # It has been said, and once is enough.
    warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)


def _known() -> list[str]:
    """Return the Korean fonts that matplotlib has in its list."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in KOREAN_FONTS if name in known]


def _installed_since() -> list[str]:
    """Return the Korean fonts installed since matplotlib made its list, which it keeps in a file.

    Looking takes a moment, and is done only where letters would be missing.
    """
    from matplotlib import font_manager

    before = {font.fname for font in font_manager.fontManager.ttflist}
    for path in sorted({*font_manager.findSystemFonts()} - before):
        if _FILES.match(os.path.basename(path)):
            font_manager.fontManager.addfont(path)
    return _known()


def _without_glyph(letters: Iterable[str], families: Iterable[str]) -> set[str]:
    """Return the letters that none of the fonts has."""
    from matplotlib import font_manager

    lacking = set(letters)
    for family in families if lacking else ():
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        font = font_manager.get_font(path)
        lacking = {letter for letter in lacking if not font.get_char_index(ord(letter))}
    return lacking


def bounds_of(
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None, average: str
) -> tuple[float, float] | None:
    """Return the interval of one average, such as ``"ndcg@10"``; ``None`` if it is undefined.

    Raises:
        InvalidInput: If the table has no such row, or is no table of intervals.
        InvalidType: If it is no table.
    """
    if intervals is None:
        return None
    if not {"low", "high"} <= set(getattr(intervals, "columns", ())):
        kind = InvalidInput if hasattr(intervals, "columns") else InvalidType
        raise kind(
            "intervals",
            "must be what confidence_intervals returned, with the columns 'low' and 'high', "
            f"got {type(intervals).__name__}",
        )
    table = cast("pd.DataFrame", intervals)
    if average not in table.index:
        raise InvalidInput(
            "intervals", f"have no row {average!r}", "compute them from the same result"
        )
    low, high = (float(table[bound][average]) for bound in ("low", "high"))
    return None if math.isnan(low) or math.isnan(high) else (low, high)


#: File name endings that :func:`save_plot` accepts.
PLOT_FORMATS = (".png", ".svg", ".pdf")

#: CSS that gives the elements of :func:`inline_svg` their colours on dark paper, for a page that
#: sets ``--ink``, ``--paper``, ``--good``, ``--warn`` and ``--bad`` itself.
DARK = "@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}".format(
    " ".join(f"{variable}: {colour};" for variable, colour in ON_DARK.values())
)

# Colour -> the variable of a page that it is taken from.
_VARIABLES = {
    INK: "--ink",
    PAPER: "--paper",
    FOUND: "--good",
    PARTIAL: "--warn",
    MISSED: "--bad",
    **{colour: variable for colour, (variable, _) in ON_DARK.items()},
}
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_TAG = re.compile(r"<[^<>]+>")
_NAMES = re.compile(r'(\bid="|href="#|url\(#)')


def save_plot(path: str | os.PathLike[str], draw: Callable[[Axes], object]) -> None:
    """Draw into a file: PNG, SVG or PDF, by the ending of its name.

    Args:
        path: The file; one of that name is overwritten.
        draw: Called with the Axes to draw on, such as ``lambda ax: metric_bars(result, 5, ax)``.

    Raises:
        InvalidInput: For another ending, listing those that are possible.
        OSError: If the file cannot be written; the error names it.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in PLOT_FORMATS:
        raise InvalidInput(
            "path", f"must end in one of {', '.join(PLOT_FORMATS)}, got {os.fspath(path)!r}"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    draw(figure.subplots())
    # In memory first: of a full disk, matplotlib's PDF writer says something else.
    written = io.BytesIO()
    with _boxes_for_missing_letters():
        figure.savefig(written, format=ending[1:], dpi=150, bbox_inches="tight", pad_inches=0.15)
    with naming(path), open(path, "wb") as file:
        file.write(written.getbuffer())


def inline_svg(
    draw: Callable[[Axes], object],
    name: str,
    *,
    title: str | None = None,
    size: tuple[float, float] = SIZE,
) -> str:
    """Draw an ``<svg>`` element for a page that holds several.

    Text stays text, in whatever font the reader has: it can be read aloud, copied and found, and
    needs no Korean font where it is drawn. The same drawing gives the same characters. Colours are
    those of a saved plot, unless the page sets variables: ``--ink`` and ``--paper``, ``--good``,
    ``--warn`` and ``--bad``, and those in ``DARK``.

    Args:
        draw: Called with the Axes to draw on.
        name: Put before every id, so that they are unique within the page: letters and digits.
        title: What a screen reader says; the picture's own title if not given.
        size: Width and height in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    written = io.StringIO()
    with _boxes_for_missing_letters(), warnings.catch_warnings():
        for beginning in NO_KOREAN_FONT.values():
            warnings.filterwarnings("ignore", message=beginning)
        ax = figure.subplots()
        draw(ax)
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    title = ax.get_title(loc="left").replace("\n", " ") if title is None else title
    return _for_a_page(written.getvalue(), name, title)


def _for_a_page(document: str, name: str, title: str) -> str:
    """Take the ``<svg>`` element out of an SVG document; nothing in it reaches beyond it."""
    svg = document[document.index("<svg") :].rstrip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Its style sheet would hold for the whole page.
    svg = re.sub(r"\s*<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = _TAG.sub(lambda tag: _COLOUR.sub(_variable, _NAMES.sub(rf"\g<1>{name}-", tag[0])), svg)
    start = svg.index(">")
    view_box = re.search(r'viewBox="[^"]*"', svg[:start])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{view_box[0] if view_box else ""} role="img" stroke-linejoin="round" '
        # What is black has no colour of its own in what matplotlib writes.
        f'stroke-linecap="butt" style="fill: var(--ink, {INK})"><title>{escape(title)}</title>'
    )
    return opening + svg[start + 1 :]


def _variable(colour: re.Match[str]) -> str:
    """Let a page change a colour, where the colour has a variable."""
    name, value = colour.groups()
    return f"{name}: var({_VARIABLES[value]}, {value})" if value in _VARIABLES else colour[0]


@contextmanager
def _boxes_for_missing_letters() -> Iterator[None]:
    """Keep matplotlib from warning of every single letter that no font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield
