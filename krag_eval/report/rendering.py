"""What both pages share: templates, escaping, numbers, words in both languages."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from krag_eval import __version__
from krag_eval._language import Language, language_of
from krag_eval._text import visible
from krag_eval.plotting.styling import DARK
from krag_eval.scoring.cutoffs import Budget, Cutoff, Unit, in_order, spelled

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(
    template: str, page: Mapping[str, Any], language: Language, title: object, date: object
) -> str:
    """Fill a template; whatever is not made by a template or a plot is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("krag_eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    said = words(language)
    known = {"w": said, "language": language, "version": __version__, "date": date}
    known |= {"title": said[f"{template} title"] if title is None else title}
    known |= {"svg": _picture, "how_to_read": template.replace(".html", f".{language}.html")}
    known |= {"dark": DARK, **_script(environment)}
    return environment.get_template(template).render({**known, **page})


def _script(environment: Environment) -> dict[str, Any]:
    """Return the script of the pages, and the hash by which a browser lets it run, and no other."""
    from markupsafe import Markup

    source, _, _ = environment.loader.get_source(environment, "page.js")  # type: ignore[union-attr]
    # As a browser reads it: with newlines of one kind, whatever the checkout has.
    script = "\n" + "\n".join(source.splitlines()) + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return {"script": Markup(script), "script_hash": f"sha256-{digest}"}


def _harmless(value: Any) -> Any:
    """Spell out what would act instead of showing; markup of ours stays as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


def _picture(svg: str) -> Any:
    """Let a picture stand as it is: plotting has escaped what is in it."""
    from markupsafe import Markup

    return Markup(svg)


def number(value: float) -> str:
    """Return three digits, or what it takes for a small number not to read as 0.

    >>> number(0.5), number(0.00002), number(float("nan"))
    ('0.500', '2e-05', '–')
    """
    if math.isnan(value):
        return "–"
    if value and abs(value) < 0.0005:
        return f"{value:.0e}"
    return f"{value:.3f}".replace("-", "−")


def p_value(p: float) -> str:
    """Return a p-value, never 0.

    >>> p_value(0.00001), p_value(0.0312)
    ('< 0.001', '0.031')
    """
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_words(p: float) -> str:
    """Return a p-value with its sign, as it stands in a sentence.

    >>> p_words(0.00001), p_words(0.0312)
    ('< 0.001', '= 0.031')
    """
    told = p_value(p)
    return told if told.startswith("<") else f"= {told}"


def percent(level: float, w: Mapping[str, str]) -> str:
    """Return a level as it is spoken of.

    >>> percent(0.95, words("en")), percent(0.95, words("ko"))
    ('95 %', '95%')
    """
    return w["percent"].format(f"{100 * level:.10g}")


def joined(parts: Iterable[str]) -> str:
    """Return the parts that say something, with a dot between."""
    return " · ".join(part for part in parts if part)


def units_of(cutoffs: Iterable[Cutoff]) -> list[Unit]:
    """Return the units that have several budgets among the cutoffs, enough for a curve.

    >>> units_of([5, Budget(500, "w"), Budget(1000, "w"), Budget(900, "c")])
    ['w']
    """
    units = [k.unit for k in in_order(cutoffs) if isinstance(k, Budget)]
    return [unit for unit in dict.fromkeys(units) if units.count(unit) > 1]


def words_of(cutoff: Cutoff, w: Mapping[str, str]) -> str:
    """Return a cutoff as a sentence names it."""
    if isinstance(cutoff, Budget):
        return w[f"budget {cutoff.unit}"].format(cutoff.amount)
    return w["at all"] if cutoff is None else w["cutoff"].format(spelled(cutoff))


_ENGLISH = {
    "result.html title": "Retrieval evaluation",
    "queries": "{} queries",
    "one query": "1 query",
    "skipped": "{} without ground truth, left out of the averages",
    "cutoff": "k = {}",
    "budget w": "a budget of {:,} words",
    "budget c": "a budget of {:,} characters",
    "budget t": "a budget of {:,} units of length",
    "all": "all",
    "at all": "all documents",
    "summary": "At {cutoff}, {recall} of what should come back did (macro recall "
    "{value}{interval}); {perfect} of {queries} queries got everything.",
    "macro_recall says": "The share of what should come back that did, averaged over the queries.",
    "ndcg says": "How much came back and how early; 1 means everything, at the very top.",
    "mrr says": "How early the first match comes: 1 at rank 1, 0.5 at rank 2.",
    "share perfect": "Perfect queries",
    "so many perfect": "{perfect} of {queries} queries got everything.",
    "metric at": "{metric} {cutoff}",
    "micro": "Micro averages, where all items or documents weigh the same",
    "outcomes at": "Outcomes of the queries at {cutoff}: {counts}",
    "diagnosis": "Where it was lost",
    "one after the other": "Causes are assigned one after the other, so an item that is missed for "
    "two reasons counts for the first. Recall here is micro recall: all items weigh the same.",
    "another k": "Diagnosed at {}; the figures above are at {}.",
    "ceiling": "Index ceiling: with perfect search and ranking, recall would be {}. More takes "
    "other chunks, or what is missing from the index.",
    "wordless": "Items without words, which count nowhere here: {}.",
    "step": "Step",
    "n items": "Items",
    "share": "Share",
    "recall by then": "Recall by then",
    "way union": "coverage(union=true)",
    "way deeper": "retrieve longer lists",
    "way index": "diagnose with the chunks of the store",
    "slices": "Slices of the queries",
    "by tag": "By {}",
    "slice": "Slice",
    "n queries": "Queries",
    "difference to the rest": "Difference to the rest",
    "of the difference": "{} interval of the difference",
    "from to": "{} to {}",
    "slice better": "{slice} is better than the rest by {by}: {metric} is {value} against {rest} "
    "(p {p} after Holm).",
    "slice worse": "{slice} is worse than the rest by {by}: {metric} is {value} against {rest} "
    "(p {p} after Holm).",
    "no slice": "No slice is shown to differ from the rest.",
    "more slices": "… and {} more slices, not shown.",
    "other metrics": "The other metrics",
    "short": "Every list has at most {most} documents, so {cutoff} sees no more than that.",
    "few": "These numbers rest on {} queries. With fewer than {} the intervals are too narrow: "
    "the true uncertainty is larger. Evaluate more queries.",
    "metrics": "Metrics",
    "metric": "Metric",
    "by item": "Items and documents",
    "by word": "Words",
    "its interval": ", {} interval {}",
    "interval note": "Below each value: its {} confidence interval.",
    "statuses": "Outcomes of the queries",
    "status": "Outcome",
    "perfect": "perfect",
    "partial": "partial",
    "missed": "missed",
    "nothing retrieved": "nothing retrieved",
    "no ground truth": "no ground truth",
    "plots": "Plots",
    "list": "The queries, hardest first",
    "list note": "Those that lost most at {cutoff} come first. Text that a passage shares with its "
    "counterpart is highlighted to help reading; no number depends on it.",
    "none missed": "At {cutoff}, every query got all of its ground truth.",
    "not shown": "{shown} of {total} queries are shown, those that lost most. To see any other: "
    "result.explain(…), or krag-eval explain in the shell.",
    "clipped": "Texts are cut to what matters, shorter where there are many queries; "
    "result.explain(…) and krag-eval explain show what was cut.",
    "tags not shown": "The first {shown} of {total} tags are shown.",
    "first rank": "First rank",
    "search": "Search queries, texts and ids",
    "all of": "{}: all",
    "no tag": "(none)",
    "by cause": "Diagnosis",
    "shown count": "{shown} of {total} queries shown",
    "nothing shown": "No query matches.",
    "show all": "Show all",
    "next miss": "Next miss",
    "previous miss": "Previous miss",
    "sort hint": "A column’s name sorts by it, once more turns the order round.",
    "signature": "What the numbers depend on",
    "setting": "Setting",
    "value": "Value",
    "how": "How to read this page",
    "ground truth": "What should come back",
    "predicted": "What came back",
    "no evidence": "This result holds no evidence, so queries cannot be explained.",
    "no text": "(text not kept)",
    "blank": "(blank)",
    "more alternatives": "(… and {} more alternatives)",
    "nothing came back": "Nothing was retrieved.",
    "query": "Query",
    "similarity": "similarity {}",
    "grade": "grade {}",
    "any of": "any of {}",
    "first": "first to cover {}",
    "repeat": "repeat of {}",
    "not relevant": "not relevant",
    "closest": "closest to {}",
    "folded": "ranks {} to {}: beyond the cutoff, not relevant",
    "one folded": "rank {}: beyond the cutoff, not relevant",
    "beyond cutoff": "matches {}, beyond the cutoff",
    "item": "item {}",
    "items": "items {}",
    "found": "found at rank {}",
    "found in pieces": "found in pieces: {}",
    "together": "ranks {others} and {last} together hold {share} %",
    "item missed in pieces": "missed: {pieces}, {shortfall} below the threshold",
    "piece": "piece of {}",
    "completes": "completes {}",
    "completes beyond cutoff": "completes {}, beyond the cutoff",
    "place": "counted at place {}",
    "item beyond cutoff": "missed: found at rank {}, beyond the cutoff",
    "pieces beyond cutoff": "missed: {pieces}, but rank {rank} is beyond the cutoff",
    "item missed": "missed: nearest at rank {rank}, {shortfall} below the threshold",
    "item missed without threshold": "missed: nearest at rank {rank}",
    "nothing in common": "missed: nothing in common with what came back",
    "no run in common": "missed: what came back shares no run of words long enough to count",
    "missed because": "missed: {}",
    "more documents": "… and {} more documents, not shown",
    "more items": "… and {} more items, not shown",
    "comparison.html title": "Comparison of retrievers",
    "verdicts": "What is shown",
    "cells": "Splitters and retrievers",
    "cell": "Cell",
    "n chunks": "Chunks",
    "by one chunk": "Recall by one chunk",
    "index ceiling": "Index ceiling",
    "context words": "Words of context",
    "median ms": "Median latency (ms)",
    "on the front": "In bold: no other cell is as good for as little context, and better or "
    "shorter.",
    "same chunks": "{} has the chunks of {}, and was not run again.",
    "choice": "Chosen on one half of the questions, reported on the other",
    "board": "Leaderboard",
    "both": "Both systems",
    "system": "System",
    "best": "best",
    "board note": "The best on {metric} first. The {level} intervals say how far each average "
    "would move with other queries; whether one system is better than another, the differences "
    "say.",
    "value note": "The {level} intervals say how far each average would move with other queries; "
    "whether one system is better than the other, the difference says.",
    "against baseline": "The others are compared with {name}, the baseline.",
    "against it alone": "The corrected p pays for these comparisons alone; the others were not "
    "compared with each other.",
    "shown": "{better} is better than {worse} on {metric} by {by} ({value_better} against "
    "{value_worse}; {level} interval {low} to {high}; p {p} after Holm).",
    "of more": "{worse} is worse than {better} on {metric} by {by} ({value_worse} against "
    "{value_better}; {level} interval {low} to {high}; p {p} after Holm), though it has a value "
    "for more queries.",
    "no difference": "No difference shown between {a} and {b} on {metric}: {b} minus {a} is {by} "
    "({level} interval {low} to {high}; p {p} after Holm).",
    "undefined": "{a} and {b} cannot be compared on {metric}: it is undefined for {without}.",
    "budgets": "At equal budgets",
    "table": "All differences",
    "interval": "{} interval",
    "effect": "Effect size d",
    "wins": "{b}: wins / ties / losses",
    "slice note": "Slices of fewer than {} queries have counts alone. Holm's correction is over "
    "all slices, pairs and metrics.",
    "changed": "Queries that changed most",
    "changed note": "Those that changed most come first. Open one to see both lists side by side, "
    "and which rank each relevant document moved from and to. Text that a passage shares with its "
    "counterpart is highlighted.",
    "changed pair": "{metric}: from {a} to {b}",
    "moved": "rank {} → {}",
    "stayed": "rank {} in both",
    "new": "new, at rank {}",
    "gone": "lost, was at rank {}",
    "in both": "in both lists",
    "nothing within": "Nothing was retrieved within the cutoff.",
    "asking failed": "Asking the retriever failed: {}",
    "ranks alone": "The texts were not kept, so ranks alone are shown. "
    "to_json(path, texts=True) keeps them.",
    "no lists": "What {names} retrieved is not known query by query, so there are values but no "
    "lists: the result was streamed, or its queries were put in another order or left out to "
    "compare it.",
    "none changed": "No query changed.",
    "left out": "Compared on the {n} queries that all systems have. Left out: {missing}.",
    "found only": "found",
    "lost only": "lost",
    "made by": "Made by krag_eval {}",
    "percent": "{} %",
}

_KOREAN = {
    "result.html title": "검색 평가 보고서",
    "queries": "질문 {}개",
    "one query": "질문 1개",
    "skipped": "정답이 없는 질문 {}개는 평균에서 제외",
    "cutoff": "k = {}",
    "budget w": "예산 {:,}단어",
    "budget c": "예산 {:,}자",
    "budget t": "예산 {:,}(직접 정한 길이 단위)",
    "all": "전체",
    "at all": "검색된 문서 전체",
    "summary": "{cutoff} 기준으로 찾아야 할 정답의 {recall}를 찾았습니다(macro 재현율 "
    "{value}{interval}). 질문 {queries}개 중 {perfect}개는 정답을 모두 찾았습니다.",
    "macro_recall says": "질문마다 정답을 찾은 비율을 구해 평균한 값입니다.",
    "ndcg says": "정답을 얼마나 많이, 얼마나 앞에서 찾았는지 나타냅니다. 모두 맨 앞에서 찾으면 "
    "1입니다.",
    "mrr says": "첫 관련 문서 순위의 역수를 평균한 값입니다. 1위면 1, 2위면 0.5입니다.",
    "share perfect": "정답을 모두 찾은 질문 비율",
    "so many perfect": "질문 {queries}개 중 {perfect}개는 정답을 모두 찾았습니다.",
    "metric at": "{metric}, {cutoff}",
    "micro": "Micro 평균(모든 항목과 문서를 같은 비중으로 계산)",
    "outcomes at": "{cutoff} 기준 질문별 결과: {counts}",
    "diagnosis": "정답을 놓친 원인",
    "one after the other": "항목마다 위에서부터 차례로 따져 처음 해당하는 원인 하나에만 넣습니다. "
    "원인이 둘 이상이어도 앞의 원인으로만 셉니다. 여기서 재현율은 모든 항목을 같은 비중으로 "
    "계산한 micro 재현율입니다.",
    "another k": "이 진단은 {} 기준이고, 위 수치는 {} 기준입니다.",
    "ceiling": "색인 상한: 검색과 순위가 완벽하더라도 재현율은 최대 {}입니다. 더 높이려면 청크를 "
    "다르게 자르거나 빠진 문서를 색인해야 합니다.",
    "wordless": "단어가 없어 진단에서 제외한 항목: {}개",
    "step": "단계",
    "n items": "항목 수",
    "share": "비율",
    "recall by then": "누적 재현율",
    "way union": "coverage(union=true)",
    "way deeper": "검색 결과를 더 깊이 받아 진단하면",
    "way index": "색인한 청크를 함께 넘겨 진단하면",
    "slices": "질문 유형별 결과",
    "by tag": "{}별",
    "slice": "슬라이스",
    "n queries": "질문 수",
    "difference to the rest": "나머지와의 차이",
    "of the difference": "차이의 {} 신뢰구간",
    "from to": "{}~{}",
    "slice better": "{slice}: 나머지 질문보다 {by}만큼 좋습니다({metric} {value} 대 {rest}, Holm "
    "보정 p {p}).",
    "slice worse": "{slice}: 나머지 질문보다 {by}만큼 나쁩니다({metric} {value} 대 {rest}, Holm "
    "보정 p {p}).",
    "no slice": "나머지와 유의한 차이가 확인된 슬라이스는 없습니다.",
    "more slices": "… 외 슬라이스 {}개는 생략했습니다.",
    "other metrics": "다른 지표",
    "short": "검색 결과가 많아야 {most}개이므로 {cutoff}에서도 그만큼만 봅니다.",
    "few": "질문 {}개만으로 계산한 수치입니다. 질문이 {}개 미만이면 신뢰구간이 실제보다 좁게 "
    "나오므로 불확실성을 더 크게 보아야 합니다. 질문을 더 모아 평가하세요.",
    "metrics": "지표",
    "metric": "지표",
    "by item": "항목·문서 단위",
    "by word": "토큰(단어나 글자) 단위",
    "its interval": ", {} 신뢰구간 {}",
    "interval note": "값 아래는 {} 신뢰구간입니다.",
    "statuses": "질문별 결과",
    "status": "결과",
    "perfect": "모두 찾음",
    "partial": "일부만 찾음",
    "missed": "하나도 못 찾음",
    "nothing retrieved": "검색 결과 없음",
    "no ground truth": "정답 없음",
    "plots": "그래프",
    "list": "질문별 상세(많이 놓친 순)",
    "list note": "{cutoff} 기준으로 정답을 많이 놓친 질문부터 보여 줍니다. 정답과 검색 결과에서 "
    "겹치는 부분은 색으로 표시했습니다. 읽기 편하게 표시했을 뿐 수치에는 영향을 주지 않습니다.",
    "none missed": "{cutoff} 기준으로 모든 질문에서 정답을 빠짐없이 찾았습니다.",
    "not shown": "전체 질문 {total}개 중 많이 놓친 {shown}개만 보여 줍니다. 나머지는 "
    "result.explain(…)이나 krag-eval explain 명령으로 확인할 수 있습니다.",
    "clipped": "본문은 필요한 부분만 보여 주며, 질문이 많으면 더 짧게 줄입니다. 생략된 부분은 "
    "result.explain(…)이나 krag-eval explain 명령으로 확인할 수 있습니다.",
    "tags not shown": "태그 {total}개 중 앞의 {shown}개만 보여 줍니다.",
    "first rank": "최초 순위",
    "search": "질문, 본문, ID 검색",
    "all of": "{}: 전체",
    "no tag": "(없음)",
    "by cause": "진단",
    "shown count": "질문 {total}개 중 {shown}개 표시",
    "nothing shown": "조건에 맞는 질문이 없습니다.",
    "show all": "모두 보기",
    "next miss": "다음 놓친 질문",
    "previous miss": "이전 놓친 질문",
    "sort hint": "열 이름을 누르면 그 열을 기준으로 정렬하고, 다시 누르면 역순으로 바꿉니다.",
    "signature": "설정 시그니처",
    "setting": "설정",
    "value": "값",
    "how": "보고서 읽는 법",
    "ground truth": "정답 문서",
    "predicted": "검색 결과",
    "no evidence": "이 결과에는 판정 근거가 저장되어 있지 않아 질문별 설명을 보여 줄 수 없습니다.",
    "no text": "(본문이 저장되지 않음)",
    "blank": "(빈 본문)",
    "more alternatives": "(… 외 대체 문서 {}개)",
    "nothing came back": "검색 결과가 없습니다.",
    "query": "질문",
    "similarity": "유사도 {}",
    "grade": "등급 {}",
    "any of": "{}개 중 하나만 찾으면 됨",
    "first": "처음 찾음: {}",
    "repeat": "중복: {}",
    "not relevant": "관련 없음",
    "closest": "가장 비슷한 정답: {}",
    "folded": "{}~{}위: 컷오프 밖, 관련 없음",
    "one folded": "{}위: 컷오프 밖, 관련 없음",
    "beyond cutoff": "컷오프 밖에서 일치: {}",
    "item": "항목 {}",
    "items": "항목 {}",
    "found": "{}위에서 찾음",
    "found in pieces": "조각으로 찾음: {}",
    "together": "{others}위와 {last}위를 합치면 {share}% 포함",
    "item missed in pieces": "놓침: {pieces}, 임계값보다 {shortfall} 낮음",
    "piece": "조각: {}",
    "completes": "완성: {}",
    "completes beyond cutoff": "컷오프 밖에서 완성: {}",
    "place": "{}번째 자리로 계산",
    "item beyond cutoff": "놓침: {}위에 있으나 컷오프 밖",
    "pieces beyond cutoff": "놓침: {pieces}({rank}위는 컷오프 밖)",
    "item missed": "놓침: 가장 비슷한 문서는 {rank}위, 임계값보다 {shortfall} 낮음",
    "item missed without threshold": "놓침: 가장 비슷한 문서는 {rank}위",
    "nothing in common": "놓침: 검색 결과와 겹치는 내용이 없음",
    "no run in common": "놓침: 검색 결과와 겹치는 단어가 기준만큼 길게 이어지지 않음",
    "missed because": "놓침: {}",
    "more documents": "… 외 문서 {}개는 생략했습니다",
    "more items": "… 외 항목 {}개는 생략했습니다",
    "comparison.html title": "검색기 비교 보고서",
    "verdicts": "비교 결과",
    "cells": "청크 분할 방법과 검색기",
    "cell": "조합",
    "n chunks": "청크 수",
    "by one chunk": "청크 하나의 재현율",
    "index ceiling": "색인 상한",
    "context words": "컨텍스트 단어 수",
    "median ms": "지연 시간 중앙값(ms)",
    "on the front": "굵은 글씨는 파레토 경계에 있는 조합입니다. 컨텍스트를 같거나 더 적게 쓰면서 "
    "점수가 이만큼 좋은 다른 조합이 없습니다.",
    "same chunks": "{}의 청크는 {}의 청크와 같아서 다시 실행하지 않았습니다.",
    "choice": "질문의 절반으로 고르고, 나머지 절반으로 확인한 결과",
    "board": "순위표",
    "both": "시스템별 점수",
    "system": "시스템",
    "best": "최고",
    "board note": "{metric} 기준으로 성능이 좋은 시스템부터 나열했습니다. {level} 신뢰구간은 다른 "
    "질문으로 평가했을 때 평균이 달라질 수 있는 범위입니다. 어느 시스템이 더 나은지는 아래의 "
    "차이를 보고 판단하세요.",
    "value note": "{level} 신뢰구간은 다른 질문으로 평가했을 때 평균이 달라질 수 있는 범위입니다. "
    "어느 시스템이 더 나은지는 아래의 차이를 보고 판단하세요.",
    "against baseline": "기준 시스템({name})과 나머지 시스템을 하나씩 비교했습니다.",
    "against it alone": "Holm 보정은 이 비교에만 적용했으며, 나머지 시스템끼리는 비교하지 "
    "않았습니다.",
    "shown": "{metric} 기준으로 {better} 쪽이 {worse}보다 {by}만큼 좋습니다({value_better} 대 "
    "{value_worse}, {level} 신뢰구간 {low}~{high}, Holm 보정 p {p}).",
    "of more": "{metric} 기준으로 {worse} 쪽은 값이 있는 질문이 더 많지만 {better}보다 {by}만큼 "
    "나쁩니다({value_worse} 대 {value_better}, {level} 신뢰구간 {low}~{high}, Holm 보정 p {p}).",
    "no difference": "{metric} 기준으로는 두 시스템({a}, {b}) 사이에 유의한 차이가 확인되지 "
    "않았습니다({b} − {a} = {by}, {level} 신뢰구간 {low}~{high}, Holm 보정 p {p}).",
    "undefined": "{metric} 기준으로는 두 시스템({a}, {b})을 비교할 수 없습니다. 값이 정의되지 않은 "
    "시스템: {without}.",
    "budgets": "같은 예산에서 비교",
    "table": "전체 비교표",
    "interval": "{} 신뢰구간",
    "effect": "효과 크기 d",
    "wins": "{b}: 승 / 무 / 패",
    "slice note": "질문이 {}개 미만인 슬라이스는 개수만 보여 줍니다. Holm 보정은 모든 슬라이스, "
    "시스템 쌍, 지표에 함께 적용했습니다.",
    "changed": "결과가 가장 많이 달라진 질문",
    "changed note": "결과가 많이 달라진 질문부터 보여 줍니다. 질문을 펼치면 두 시스템의 검색 "
    "결과를 나란히 비교하고 관련 문서의 순위가 어떻게 바뀌었는지 확인할 수 있습니다. 정답과 검색 "
    "결과에서 겹치는 부분은 색으로 표시했습니다.",
    "changed pair": "{metric}: {a} → {b}",
    "moved": "{}위 → {}위",
    "stayed": "양쪽 모두 {}위",
    "new": "새로 찾음({}위)",
    "gone": "놓침(전에는 {}위)",
    "in both": "양쪽 모두 있음",
    "nothing within": "컷오프 안에 검색 결과가 없습니다.",
    "asking failed": "검색기를 호출하다가 오류가 발생했습니다: {}",
    "ranks alone": "본문이 저장되지 않아 순위만 보여 줍니다. to_json(path, texts=True)로 "
    "저장하면 본문도 남습니다.",
    "no lists": "질문별 검색 결과를 알 수 없는 시스템({names})이 있어 목록 없이 값만 보여 줍니다. "
    "파일을 나누어 평가했거나, 비교하려고 질문의 순서를 맞추거나 일부를 제외한 결과이기 "
    "때문입니다.",
    "none changed": "결과가 달라진 질문이 없습니다.",
    "left out": "모든 시스템에 공통으로 있는 질문 {n}개만 비교했습니다. 제외한 질문 수: {missing}",
    "found only": "새로 찾음",
    "lost only": "놓침",
    "made by": "krag_eval {}에서 생성",
    "percent": "{}%",
}

_WORDS: dict[str, Mapping[str, str]] = {"en": _ENGLISH, "ko": _KOREAN}


def words(language: Language) -> Mapping[str, str]:
    """Return the phrases of a language, with braces where something is to be filled in.

    Raises:
        InvalidInput: If there is no such language.
    """
    return _WORDS[language_of(language)]
