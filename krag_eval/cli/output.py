"""What a command prints, and the files it writes: checked first, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from krag_eval._io import check_apart, replacing
from krag_eval._language import Language, language_of
from krag_eval._text import fitted, width_of
from krag_eval.cli.shell import Verdict, printable
from krag_eval.errors import InvalidInput, Refusal, warn
from krag_eval.scoring.averages import in_pairs
from krag_eval.scoring.cutoffs import spelled

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.datasets.audit import Audit
    from krag_eval.results.diagnosis import Diagnosis
    from krag_eval.results.history import HistoryReport
    from krag_eval.results.result import EvaluationResult
    from krag_eval.statistics.gates import GateReport
    from krag_eval.statistics.slices import Slice, Slices

# Text whose name has no prescribed ending, so that '-' may be standard output.
_STREAMED = ("json", "csv", "markdown", "latex", "format")
# Files whose kind follows from the ending of their name; plots have theirs from plotting.
_ENDINGS = {
    "report": (".html", ".htm"),
    "page": (".html", ".htm"),
    "per_query": (".parquet", ".csv"),
}
# The progress of a run is kept beside its output.
_PROGRESS = {"per_query": ".partial"}


# What commands print, in both languages.
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "wrote": "wrote {} ({})",
        "not noted": "what became of this gate could not be written into {new} ({error}), so that "
        "a history takes it for any other run",
        "what is printed": "what is printed",
        "the result": "the result",
        "the audit": "the audit",
        "the diagnosis": "the diagnosis",
        "an HTML report": "an HTML report",
        "one row per query": "one row per query",
        "one row per query and cutoff": "one row per query and cutoff",
        "one row per run, query and cutoff": "one row per run, query and cutoff",
        "one row per place that was found": "one row per place that was found",
        "one row per ground-truth item": "one row per ground-truth item",
        "the metrics": "the metrics @{}",
        "the table, in Markdown": "the table, in Markdown",
        "the table, in LaTeX": "the table, in LaTeX",
        "the differences with their intervals": "the differences with their intervals",
        "the decision at every threshold": "the decision at every threshold",
        "the decision by threshold": "the decision by threshold",
        "demo data": "krag_eval's demo data",
        "the metrics from run to run": "the metrics from run to run",
        "the table of cells": "the table of cells",
        "quality against context": "quality against context",
        "sweep front": "* no other cell is as good for as little context, and better or shorter",
        "sweep same": "{} has the chunks of {}, and was not run again.",
        "queries": "{n} queries from {source}",
        "one query": "{n} query from {source}",
        "skipped": " ({} more skipped: no ground truth)",
        "signature": "signature: ",
        "metric": "metric",
        "interval": "{} % interval",
        "from to": "{} to {}",
        "finding": "finding",
        "nothing else": "Nothing else: {}.",
        "rows": "rows",
        "share": "share",
        "tiers": "Questions by how much of them stands in their ground truth: quoted, the share of "
        "words that stand there in a row, just so; overlap, the share of words that occur there "
        "at all.",
        "tier to": " to ",
        "tier percent": " %",
        "in query": "    query {}",
        "in item": "    query {}, item {}",
        "more": "and {} more",
        "value": "value",
        "minus rest": "minus rest",
        "more slices": "and {} more slices, which Python shows",
        "missed some": "{n} of {queries} queries lost something @{k}",
        "position": "position",
        "query": "query",
        "missed": "missed",
        "status": "status",
        "found": "found",
        "similarity": "similarity",
        "rank": "rank",
        "of": "{} of {}",
        "status perfect": "perfect",
        "status partial": "partial",
        "status missed": "missed",
        "status nothing retrieved": "nothing retrieved",
        "status no ground truth": "no ground truth",
        "list all": "and {} more; -n {} lists all",
        "standard input": "standard input",
        "items of": "{} ground-truth items from {}, ",
        "item of": "{} ground-truth item from {}, ",
        "chunks": "{} chunks",
        "chunk": "{} chunk",
        "with union": "--union",
        "deeper": "evaluate longer lists, or a smaller -k,",
        "with index": "pass --index CHUNKS",
        "not counted": "(not counted)",
        "class": "class",
        "micro recall": "micro recall@{}",
        "items": "items",
        "cumulative": "cumulative",
        "systems": "{} systems on {} queries",
        "system": "system",
        "minus": "{b} minus {a}; wins and losses are the queries on which {b} is better and worse",
        "difference": "difference",
        "effect size": "effect size",
        "wins": "wins",
        "ties": "ties",
        "losses": "losses",
        "before after": "{} to {}",
        "none changed": "No query changed on {}.",
        "changed most": "Changed most on {}:",
        "best threshold": "best threshold",
        "separates": "separates all pairs",
        "precision": "precision",
        "recall": "recall",
        "nearest": "Nearest to the threshold, worth a second look:",
        "actual": "actual",
        "predicted": "predicted",
        "pair": "pair",
        "relevant": "relevant",
        "yes": "yes",
        "no": "no",
        "labels": "! marks a decision that contradicts the label. Pairs are counted from 0. Choose "
        "a threshold within the interval; a wide one asks for more pairs like these.",
        "labelled pairs": "{pairs} pairs ({relevant} relevant), {matcher}",
        "topics": "{n} topics of {qrels}",
        "topic": "{n} topic of {qrels}",
        "to": "{} to {}",
        "matcher": "matcher",
        "other ways": "The same retrieved lists, matched in other ways:",
        "text": "counts a document whose text equals the ground truth",
        "contains": "counts a document that has the ground truth in it, as a longer chunk does",
        "coverage": "counts a document that covers most of the ground truth, as a cut chunk may",
        "demo": """\
A library in English and a bicycle rental in Korean: for every question, what a retriever should
have found and what it found. A document counts as found when its text is equal (--matcher text).
""",
        "next": """
Where to go next

  1. Write one JSON object per line into a file, say results.jsonl:
     {"question": "When?", "actual": ["At nine."], "predicted": ["At ten.", "At nine."]}
  2. Evaluate it, with a chart:
     krag-eval evaluate results.jsonl --matcher coverage -k 1,5 --plot chart.png
  3. Read what every number means: docs/metrics.md. All options: krag-eval evaluate --help""",
    },
    "ko": {
        "wrote": "{} 저장 완료({})",
        "not noted": "게이트의 판정을 {new} 파일에 적지 못해({error}), 평가 기록에서는 여느 실행과 "
        "똑같이 다룹니다",
        "what is printed": "출력 내용",
        "the result": "평가 결과",
        "the audit": "점검 결과",
        "the diagnosis": "진단 결과",
        "an HTML report": "HTML 보고서",
        "one row per query": "질문마다 한 행",
        "one row per query and cutoff": "질문과 컷오프마다 한 행",
        "one row per run, query and cutoff": "실행, 질문, 컷오프마다 한 행",
        "one row per place that was found": "찾은 문제마다 한 행",
        "one row per ground-truth item": "정답 항목마다 한 행",
        "the metrics": "지표 @{}",
        "the table, in Markdown": "Markdown 표",
        "the table, in LaTeX": "LaTeX 표",
        "the differences with their intervals": "차이와 신뢰구간",
        "the decision at every threshold": "임계값마다의 판정",
        "the decision by threshold": "임계값에 따른 판정",
        "demo data": "예시 데이터",
        "the metrics from run to run": "실행별 지표",
        "the table of cells": "조합별 표",
        "quality against context": "컨텍스트 양에 따른 품질",
        "sweep front": "* 파레토 경계: 컨텍스트를 같거나 더 적게 쓰면서 점수가 이만큼 좋은 다른 "
        "조합이 없습니다",
        "sweep same": "{}의 청크는 {}의 청크와 같아서 다시 실행하지 않았습니다.",
        "queries": "{source}의 질문 {n}개",
        "one query": "{source}의 질문 {n}개",
        "skipped": " (정답이 없는 질문 {}개는 제외)",
        "signature": "설정 시그니처: ",
        "metric": "지표",
        "interval": "{}% 신뢰구간",
        "from to": "{}~{}",
        "finding": "점검 항목",
        "nothing else": "발견되지 않은 항목: {}.",
        "rows": "건수",
        "share": "비율",
        "tiers": "질문이 정답 문서와 얼마나 겹치는지 비율별로 센 질문 수입니다. "
        "quoted는 질문의 단어 중 정답 문서에 그대로 이어서 나오는 비율, "
        "overlap은 이어지지 않더라도 나오는 비율입니다.",
        "tier to": "~",
        "tier percent": "%",
        "in query": "    질문 {}",
        "in item": "    질문 {}, 항목 {}",
        "more": "외 {}개",
        "value": "값",
        "minus rest": "나머지와의 차이",
        "more slices": "외 슬라이스 {}개는 파이썬에서 볼 수 있습니다",
        "missed some": "@{k} 기준으로 질문 {queries}개 중 {n}개에서 정답을 놓쳤습니다",
        "position": "위치",
        "query": "질문",
        "missed": "놓친 정답",
        "status": "결과",
        "found": "찾은 항목",
        "similarity": "유사도",
        "rank": "순위",
        "of": "{}/{}",
        "status perfect": "모두 찾음",
        "status partial": "일부만 찾음",
        "status missed": "하나도 못 찾음",
        "status nothing retrieved": "검색 결과 없음",
        "status no ground truth": "정답 없음",
        "list all": "외 {}개, 모두 보려면 -n {}",
        "standard input": "표준 입력",
        "items of": "{1}의 정답 항목 {0}개, ",
        "item of": "{1}의 정답 항목 {0}개, ",
        "chunks": "청크 {}개",
        "chunk": "청크 {}개",
        "with union": "--union",
        "deeper": "더 긴 목록으로 평가하거나 -k를 줄이면",
        "with index": "--index CHUNKS를 넘기면",
        "not counted": "(계산에서 제외)",
        "class": "분류",
        "micro recall": "micro 재현율@{}",
        "items": "항목 수",
        "cumulative": "누적 재현율",
        "systems": "시스템 {}개, 질문 {}개",
        "system": "시스템",
        "minus": "{b} − {a}: 승과 패는 {b} 쪽이 더 좋은 질문과 더 나쁜 질문의 수입니다",
        "difference": "차이",
        "effect size": "효과 크기",
        "wins": "승",
        "ties": "무",
        "losses": "패",
        "before after": "{} → {}",
        "none changed": "{} 기준으로 결과가 달라진 질문이 없습니다.",
        "changed most": "{} 기준으로 결과가 가장 많이 달라진 질문:",
        "best threshold": "최적 임계값",
        "separates": "모든 쌍을 가르는 값",
        "precision": "정밀도",
        "recall": "재현율",
        "nearest": "임계값에 가까워 다시 볼 만한 쌍:",
        "actual": "정답 문서",
        "predicted": "검색 결과",
        "pair": "쌍",
        "relevant": "관련 있음",
        "yes": "예",
        "no": "아니요",
        "labels": "!는 판정이 라벨과 다르다는 표시입니다. 쌍은 0부터 셉니다. 임계값은 신뢰구간 "
        "안에서 고르세요. 신뢰구간이 넓으면 이런 쌍을 더 판정해야 합니다.",
        "labelled pairs": "{pairs}쌍(관련 있음 {relevant}쌍), {matcher}",
        "topics": "{qrels}의 주제 {n}개",
        "topic": "{qrels}의 주제 {n}개",
        "to": "{}~{}",
        "matcher": "매처",
        "other ways": "같은 검색 결과를 다른 매처로 판정하면:",
        "text": "본문이 정답과 똑같은 문서를 일치로 판정",
        "contains": "정답 전체를 담은 문서를 일치로 판정(더 긴 청크도 포함)",
        "coverage": "정답을 대부분 담은 문서를 일치로 판정(잘린 청크도 포함)",
        "demo": """\
영어로 된 도서관 안내와 한국어로 된 자전거 대여 안내입니다. 질문마다 정답 문서와 검색 결과가
들어 있습니다. 여기서는 본문이 똑같은 문서만 찾은 것으로 봅니다(--matcher text).
""",
        "next": """
다음 단계

  1. 한 줄에 JSON 객체 하나씩 파일(예: results.jsonl)에 적습니다.
     {"question": "몇 시?", "actual": ["아홉 시."], "predicted": ["열 시.", "아홉 시."]}
  2. 평가하고 그래프도 그립니다.
     krag-eval evaluate results.jsonl --matcher coverage -k 1,5 --plot chart.png
  3. 지표의 뜻은 docs/ko/metrics.md에, 모든 옵션은 krag-eval evaluate --help에 있습니다.""",
    },
}


def said(key: str) -> str:
    """Return a phrase in the language of the command, with braces for what is filled in."""
    return _WORDS[language_of()][key]


class StandardOutput:
    """Standard output as the place of one output; everything else is printed elsewhere."""

    def __init__(self) -> None:
        self._stream = sys.stdout

    def write(self, text: str) -> None:
        """Write all of it, in UTF-8 whatever the terminal can show."""
        self._stream.flush()
        self._stream.buffer.write(text.encode("utf-8"))
        self._stream.buffer.flush()

    def descriptor(self) -> int | None:
        """Return what the operating system calls it; ``None`` if it is not a file of its own."""
        return _descriptor(self._stream)


Target: TypeAlias = "Path | StandardOutput"
#: Where to write what was asked for, by the name of its option in Python.
Outputs: TypeAlias = Mapping[str, Target]


#: What ``--format`` prints, by its value: a mapping, rows, and rows or Markdown.
Forms: TypeAlias = Mapping[str, Callable[[], Any]]


def checked_outputs(named: Mapping[str, str | None], sources: Iterable[str]) -> Outputs:
    """Return where to write, if every name can be written to.

    Args:
        named: What was given for each option; a ``format`` other than a table is written to
            standard output.
        sources: The files that are read, which must not be overwritten.

    Raises:
        InvalidInput: If one of them cannot be, naming the option.
    """
    given = {option: name for option, name in named.items() if name is not None}
    if "format" in given and given.pop("format") != "table":
        given["format"] = "-"
    if not given:
        return {}
    streamed = [option for option, name in given.items() if name == "-"]
    if len(streamed) > 1:
        raise InvalidInput(streamed[1], ": only one output can be - (standard output)")
    targets = {option: _checked_output(option, name) for option, name in given.items()}
    check_not_read(targets, sources)
    for option, name in given.items():
        _check_ending(option, name)
    return targets


def _checked_output(option: str, name: str) -> Target:
    """Return where a file will be written; through a link, the file it points to."""
    if name == "-":
        return _checked_standard_output(option)
    path = Path(os.path.realpath(name))
    if path.is_dir() or not path.name:
        raise InvalidInput(option, f": {name} is a directory", "name a file in it")
    if path.exists() and not path.is_file():
        raise InvalidInput(option, f": {name} is not a regular file", "name one")
    if not path.parent.is_dir():
        raise InvalidInput(option, f": there is no directory {path.parent}", "create it first")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(option, f": the directory {path.parent} cannot be written to")
    return path


def _checked_standard_output(option: str) -> StandardOutput:
    if option not in _STREAMED:
        options = ", ".join(f"--{one}" for one in _STREAMED if one != "format")
        problem = f": - is standard output, which {options} alone can be written to"
        raise InvalidInput(option, problem, "name a file")
    if getattr(sys.stdout, "buffer", None) is None:
        raise InvalidInput(option, ": - is standard output, which is closed", "name a file")
    return StandardOutput()


def _check_ending(option: str, name: str) -> None:
    endings: tuple[str, ...] | None = _ENDINGS.get(option)
    if option == "plot":
        from krag_eval.plotting import PLOT_FORMATS

        endings = PLOT_FORMATS
    if endings is not None and Path(name).suffix.lower() not in endings:
        raise InvalidInput(option, f": {name} must end in one of {', '.join(endings)}")


def check_not_read(targets: Outputs, sources: Iterable[str]) -> None:
    """Refuse an output among the files that are read.

    Raises:
        InvalidInput: Naming the option.
    """
    from krag_eval.streaming.files import is_read_in_directories

    written = {
        option: target.descriptor() if isinstance(target, StandardOutput) else target
        for option, target in targets.items()
    }
    read = [_descriptor(sys.stdin) if source == "-" else source for source in sources]
    check_apart(
        {option: place for option, place in written.items() if place is not None},
        [source for source in read if source is not None],
        is_read=is_read_in_directories,
        folders={
            option: Path(f"{written[option]}{ending}")
            for option, ending in _PROGRESS.items()
            if option in written
        },
    )


def _descriptor(stream: object) -> int | None:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def printing_beside(outputs: Outputs) -> Iterator[None]:
    """Print to standard error meanwhile, if an output goes to standard output."""
    if any(isinstance(target, StandardOutput) for target in outputs.values()):
        with redirect_stdout(sys.stderr):
            yield
    else:
        yield


def write_files(outputs: Outputs, writers: Mapping[str, tuple[Callable[[Any], None], str]]) -> None:
    """Write every file asked for, and say so; each appears complete or not at all.

    Args:
        outputs: Where to write what.
        writers: What writes the output of an option, and what it is.
    """
    for option, (write, what) in writers.items():
        if option in outputs:
            target = outputs[option]
            write(target)
            if isinstance(target, Path):
                told = _WORDS[language_of()].get(what, what)
                click.echo(said("wrote").format(printable(str(target)), told))


def write_text(text: str, target: Target) -> None:
    """Write a text."""
    if isinstance(target, StandardOutput):
        target.write(text)
        return
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def formatted(format: str, forms: Callable[[], Forms]) -> tuple[Callable[[Any], None], str]:
    """Return what writes the value of ``--format``, as :func:`write_files` takes it."""
    return lambda target: _WRITERS[format](forms()[format](), target), "what is printed"


def _write_as_json(content: Mapping[str, Any], target: Target) -> None:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2)
    write_text(f"{text}\n", target)


def _write_as_markdown(content: pd.DataFrame | str, target: Target) -> None:
    """Write a table of rows, rounded for reading, whose texts are to the left."""
    write_text(content if isinstance(content, str) else markdown_of(content), target)


def markdown_of(rows: pd.DataFrame, named: Collection[str] = ()) -> str:
    """Return a table of rows in Markdown, rounded for reading; its first column is a name.

    Args:
        rows: The table.
        named: The columns that the user named.
    """
    from krag_eval.statistics.comparison import as_markdown

    cells = [
        ["-" if one is None else four_digits(one) if isinstance(one, float) else str(one)
         for one in row]
        for row in _known(rows).to_numpy().tolist()
    ]  # fmt: skip
    known = _HEADINGS[language_of()]
    names = [*map(str, rows.columns)]
    header = [name if name in named else known.get(name, name) for name in names]
    return as_markdown([header, *cells], n_names=1)


_IN_KOREAN = {
    "metric": "지표",
    "value": "값",
    "low": "신뢰구간 하한",
    "high": "신뢰구간 상한",
    "slice": "슬라이스",
    "n": "질문 수",
    "rest": "나머지",
    "difference": "차이",
    "ci_low": "차이의 신뢰구간 하한",
    "ci_high": "차이의 신뢰구간 상한",
    "p_permutation": "p",
    "p_holm": "p (Holm)",
    "query": "질문",
    "status": "결과",
    "missed": "놓친 정답",
    "similarity": "유사도",
    "rank": "순위",
    "ground_truth": "정답 항목",
    "retrieved": "검색된 문서",
    "relevant": "관련",
    "covered": "찾은 항목",
    "finding": "점검 항목",
    "rows": "건수",
    "class": "분류",
    "label": "뜻",
    "items": "항목 수",
    "share": "비율",
    "cumulative": "누적 재현율",
    "passed": "통과",
    "reason": "이유",
    "pair": "쌍",
    "actual": "정답 문서",
    "predicted": "검색 결과",
    "wrong": "라벨과 다름",
    "failed": "검색 실패",
    "failed_a": "a의 검색 실패",
    "failed_b": "b의 검색 실패",
    "run": "실행",
    "made": "평가 시각",
    "made_by_file": "수정 시각으로 대신함",
    "comparable": "비교 가능",
    "changed": "바뀐 것",
    "detect": "확인할 차이",
    "power": "검정력",
    "alpha": "유의수준",
    "questions": "질문 수",
    "pilot_questions": "파일럿의 질문 수",
    "detectable": "파일럿으로 확인할 수 있는 차이",
    "sd": "표준편차",
    "design_effect": "설계 효과",
    "clusters": "클러스터",
    "n_clusters": "클러스터 수",
    "systems": "시스템",
    "correlation": "상관계수",
    "cell": "조합",
    "pareto": "파레토 경계에 있음",
    "same_as": "청크가 같은 조합",
}
#: What the columns of a table are called where people read it.
_HEADINGS: Mapping[Language, Mapping[str, str]] = {
    "en": {name: name for name in _IN_KOREAN},
    "ko": _IN_KOREAN,
}


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with ``None`` for what is not known."""
    return rows.astype(object).where(rows.notna(), None)


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON has them; what is not known is ``None``."""
    return [{str(name): one for name, one in row.items()}
            for row in _known(rows).to_dict("records")]  # fmt: skip


def or_none(values: Mapping[str, float]) -> dict[str, float | None]:
    """Return averages as JSON has them; what is undefined is ``None``.

    >>> or_none({"mrr@5": 0.5, "mean_rank@5": float("nan")})
    {'mrr@5': 0.5, 'mean_rank@5': None}
    """
    return {name: value if value == value else None for name, value in values.items()}


def write_json(
    result: EvaluationResult,
    target: Target,
    *,
    texts: bool = False,
    gate: GateReport | None = None,
) -> None:
    """Save a result, with what became of the gate that it was held to."""
    from krag_eval.results.saved import as_text

    if isinstance(target, StandardOutput):
        noted = result if gate is None else replace(result, gate=gate.noted)
        target.write(as_text(noted, "-", texts=texts))
    else:
        result.to_json(target, texts=texts, gate=gate)


def rows_of(result: EvaluationResult) -> pd.DataFrame:
    """Return the per-query tables of all cutoffs below each other."""
    import pandas as pd

    tables = [result.per_query(k).assign(k=spelled(k)) for k in result.k]
    rows = pd.concat(tables).reset_index()
    return rows[["query", "k", *(name for name in rows.columns if name not in ("query", "k"))]]


def write_csv(rows: pd.DataFrame, target: Target) -> None:
    """Write a table of rows."""
    from krag_eval.results.rows import csv_lines

    write_text("".join(csv_lines({name: rows[name] for name in rows.columns})), target)


def write_table(rows: pd.DataFrame, target: Target) -> None:
    """Write a table of rows as CSV; what is not known leaves its cell empty."""
    write_csv(_known(rows), target)


_WRITERS: Mapping[str, Callable[[Any, Any], None]] = {
    "json": _write_as_json,
    "csv": write_table,
    "markdown": _write_as_markdown,
    "github": write_text,
    "gitlab": _write_as_json,
}


def write_plot(draw: Callable[[Axes], object], path: Path) -> None:
    """Write a plot."""
    from krag_eval.plotting import save_plot

    with replacing(path) as temporary:
        save_plot(temporary, draw)


#: The most columns of the terminal that values and their name take.
WIDEST = 16
# The columns that everything fits into where it is not printed to a terminal, and at the least.
_WIDTH, _NARROWEST = 100, 60
# Cutoffs side by side, with one average in a row, with two, and with an interval beside each
# average, where there is no room for a second one: as many fit into 100 columns. More cutoffs are
# continued below.
_CUTOFFS, _CUTOFFS_IN_PAIRS, _CUTOFFS_WITH_INTERVALS = 8, 5, 3
# What goes without saying in a terminal, where a result is to fit: what the table shows, what a
# warning says, and defaults.
_COVERAGE_BY_DEFAULT = "coverage(min_run=5,tokenizer=auto(words,letters))"
_SHOWN_BESIDE = ("k=", "queries=", "retrieved<=", "krag_eval=")
_BY_DEFAULT = ("threshold=-", "criteria=all", "averaging=both", "conventions=default", "grades=-",
               "no_ground_truth=error")  # fmt: skip


def terminal_width() -> int:
    """Return the columns that everything fits into: those of the terminal, if it is one."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return _WIDTH
    return max(columns, _NARROWEST) if columns else _WIDTH


def print_result(
    result: EvaluationResult,
    source: str,
    intervals: pd.DataFrame | None = None,
    averages: Collection[str] | None = None,
    *,
    whole: bool = True,
) -> None:
    """Print how many queries count, a table of averages by cutoff, and the signature.

    Args:
        result: What to print.
        source: Where its queries come from.
        intervals: The 95 % interval of each average, printed beside it.
        averages: The averages to print; all of them if not given.
        whole: Whether to print all of the signature in a terminal, too.
    """
    w, counted = _WORDS[language_of()], result.summary.n_counted
    skipped = result.summary.n_queries - counted
    title = w["one query" if counted == 1 else "queries"]
    title = title.format(n=counted, source=printable(source))
    click.echo(title + (w["skipped"].format(skipped) if skipped else "") + "\n")
    values, cutoffs = result.to_dict(), [spelled(k) for k in result.k]
    names = result.row_names()
    keys = result.shown if averages is None else [one for one in names if one in averages]
    rows = in_pairs(keys) if intervals is None else {key: (key,) for key in keys}
    # What counts as found stands below the name where four cutoffs leave no room beside it.
    between = " " if terminal_width() >= _WIDTH or len(cutoffs) < 4 else "\n  "
    rows = {names.get(name, name).replace(" ", between, 1): pair for name, pair in rows.items()}
    fitting = _CUTOFFS if len(rows) == len(keys) else _CUTOFFS_IN_PAIRS
    fitting = fitting if intervals is None else _CUTOFFS_WITH_INTERVALS
    step = fitting * terminal_width() // _WIDTH
    for start in range(0, len(cutoffs), step):
        _print_averages(values, rows, cutoffs[start : start + step], intervals)
    for told in result.summary.told_failed():
        print_wrapped(told)
    is_seen = bool(sys.stdout and sys.stdout.isatty())  # it may be closed
    print_signature(result.signature, whole=whole or not is_seen)


def forms_of_result(
    result: EvaluationResult,
    averages: Collection[str] | None,
    intervals: pd.DataFrame | None,
    sliced: Sequence[Slices],
) -> Forms:
    """Return what is printed of a result, in every format."""
    import pandas as pd

    values = {
        name: value
        for name, value in result.to_dict().items()
        if averages is None or name.rpartition("@")[0] in averages
    }
    cells = [[*name.rsplit("@", 1), value] for name, value in values.items()]
    rows = pd.DataFrame(cells, columns=["metric", "k", "value"])
    read = result.shown if averages is None else averages
    more: dict[str, Any] = {}
    if intervals is not None:
        bounds = intervals[["low", "high"]].reindex(list(values))
        rows = rows.assign(low=bounds["low"].to_numpy(), high=bounds["high"].to_numpy())
        pairs = zip(values, _known(bounds).to_numpy().tolist(), strict=True)
        more["intervals"] = {name: pair for name, pair in pairs if None not in pair}
    shown = rows[rows["metric"].isin(list(read))]
    if sliced:
        more["slices"] = {one.tag: records_of(one.table) for one in sliced}
    return {
        "json": lambda: {
            "n_queries": result.n_queries,
            "n_counted": result.summary.n_counted,
            **({"n_failed": result.n_failed} if result.n_failed else {}),
            "metrics": or_none(values),
            **more,
            "signature": result.signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: "\n".join(
            map(markdown_of, [_wide(shown, result), *(one.table for one in sliced)])
        ),
    }


def _wide(rows: pd.DataFrame, result: EvaluationResult) -> pd.DataFrame:
    """Return averages with their cutoffs side by side, each followed by its interval."""
    import pandas as pd

    rows = rows.assign(metric=rows["metric"].map(result.row_names()))
    columns: dict[str, Any] = {}
    for k, part in rows.groupby("k", sort=False):
        of_metric = part.set_index("metric")
        columns[f"@{k}"] = of_metric["value"]
        if "low" in of_metric:
            ends = zip(of_metric["low"], of_metric["high"], strict=True)
            texts = [_range(*pair) for pair in ends]
            columns[f"{said('interval').format(95)} @{k}"] = pd.Series(texts, of_metric.index)
    return pd.DataFrame(columns).reset_index()


def _print_averages(
    values: Mapping[str, float],
    rows: Mapping[str, tuple[str, ...]],
    cutoffs: Sequence[str],
    intervals: pd.DataFrame | None,
) -> None:
    bounds = {} if intervals is None else intervals[["low", "high"]].T.to_dict("list")
    paired = any(len(keys) > 1 for keys in rows.values())
    w = _WORDS[language_of()]
    header = [f"\n{w['metric']}" if paired else w["metric"]]
    cells = {name: [name] for name in rows}
    for k in cutoffs:
        header += [f"@{k}\nmacro", f"@{k}\nmicro"] if paired else [f"@{k}"]
        header += [] if intervals is None else [w["interval"].format(95)]
        for name, keys in rows.items():
            cells[name] += [four_digits(values[f"{key}@{k}"]) for key in keys]
            if intervals is not None:
                cells[name].append(_range(*bounds.get(f"{keys[0]}@{k}", (math.nan, math.nan))))
            elif paired and len(keys) == 1:
                cells[name].append("")
    # In pairs, four cutoffs fit into 80 columns so.
    print_cells(header, list(cells.values()), apart=2 if paired else 3)


def _range(low: float, high: float) -> str:
    """Return an interval, narrow enough for a column.

    >>> _range(0.41234, 0.8), _range(float("nan"), float("nan")), _range(998.0, 1234.56)
    ('0.412–0.800', '-', '998.0–1234.6')
    """
    digits = 3 if high < 100 else 1
    return f"{low:.{digits}f}–{high:.{digits}f}" if low == low else "-"


# Rows of a finding that are printed.
_ROWS = 3


def print_audit(found: Audit, source: str) -> None:
    """Print what was found, and what was not, then the tiers; what to do, and the first rows."""
    looked_at, *lines = found.summary().split("\n")
    click.echo(f"{printable(source)}: {looked_at}\n")
    counts = [[name, str(len(one.rows))] for name, one in found.findings.items() if one.rows]
    nothing = ", ".join(name for name, one in found.findings.items() if not one.rows)
    if counts:
        print_cells([said("finding"), said("rows")], counts)
        if nothing:
            print_wrapped(said("nothing else").format(nothing))
            click.echo()
    if found.shares:
        tiers = found.tiers.rename(index=_shown_tier).reset_index()
        header = [said("share") if name == "share" else name for name in tiers.columns]
        print_cells(header, tiers.astype(str).to_numpy().tolist())
        print_wrapped(said("tiers"))
        click.echo()
    for line in lines:
        print_wrapped(line)
        name = line.partition(":")[0]
        rows = found.findings[name].rows if name in found.findings else ()
        for row in rows[:_ROWS]:
            start = said("in item" if row.item else "in query").format(row.position, row.item)
            end = printable(f"({row.concerns})")
            room = max(terminal_width() - width_of(start) - width_of(end) - 3, _NARROWEST // 4)
            click.echo(f"{start}: {fitted(printable(row.text), room)} {end}")
        if len(rows) > _ROWS:
            click.echo("    " + said("more").format(len(rows) - _ROWS))


def _shown_tier(name: str) -> str:
    return name.replace(" to ", said("tier to")).replace(" %", said("tier percent"))


def forms_of_audit(found: Audit) -> Forms:
    """Return how often each finding occurs, in every format; what was not looked for is unknown."""
    import pandas as pd

    counts: dict[str, int | None] = {name: len(one.rows) for name, one in found.findings.items()}
    counts |= dict.fromkeys(found.unchecked)
    rows = pd.DataFrame({"finding": list(counts), "rows": list(counts.values())}, dtype=object)
    return {
        "json": lambda: {
            "looked_at": dict(found.counts),
            "findings": counts,
            "unchecked": dict(found.unchecked),
            "tiers": {name: dict(tiers) for name, tiers in found.shares.items()},
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


# Slices that are printed, and the columns for the name of one.
_MOST_SLICES = 40
_WIDEST_SLICE = 22


def print_slices(slices: Slices) -> None:
    """Print the averages within slices, which of them differ from the rest, and the notes."""
    from krag_eval.statistics.slices import title_of

    n = len(slices.names)
    click.echo(f"\n{printable(title_of(slices, language_of()))}\n")
    within = said("interval").format(f"{100 * slices.level:g}")
    for metric in slices.metrics:
        header = [metric, "n", said("value"), within, said("minus rest"), within, "p (Holm)"]
        rows = [_cells(row) for row in slices.rows if row.metric == metric]
        print_cells(header, rows[:_MOST_SLICES])
    if n > _MOST_SLICES:
        click.echo(said("more slices").format(n - _MOST_SLICES))
    for line in (*slices.summary().split("\n"), *slices.notes):
        print_wrapped(printable(line))


def _cells(row: Slice) -> list[str]:
    return [
        fitted(printable(row.slice), _WIDEST_SLICE),
        str(row.n),
        four_digits(row.value),
        _range(row.low, row.high),
        four_digits(row.difference),
        spanned(row.ci_low, row.ci_high),
        "<0.0001" if row.p_holm < 0.0001 else four_digits(row.p_holm),
    ]


def spanned(low: float, high: float) -> str:
    """Return an interval, narrow enough for a column.

    >>> spanned(-0.0123, 0.4), spanned(-12.04, -10.1)
    ('-0.012 to 0.400', '-12.0 to -10.1')
    """
    if math.isnan(low):
        return "-"
    digits = 3 if max(-low, high) < 10 else 1
    return said("from to").format(f"{low:.{digits}f}", f"{high:.{digits}f}")


# The columns for a question, for a status, and for all that is neither a text nor a status.
_WIDEST_QUERY, _WIDEST_STATUS, _NUMBERS = 56, 20, 47
# The columns for a text at the least, and for all beside a question where little is known.
_NARROWEST_TEXT, _BESIDE_QUERY = 16, 44


def print_misses(missed: pd.DataFrame, n: int, labels: Sequence[str | int], k: str) -> None:
    """Print the first of the queries that lost something.

    Args:
        missed: All of them.
        n: How many to print.
        labels: The labels of all queries; one that several share tells no position.
        k: The cutoff.
    """
    click.echo(said("missed some").format(n=len(missed), queries=len(labels), k=k))
    if missed.empty:
        return
    click.echo()
    positions = {label: str(place) for place, label in enumerate(labels)}
    shared = {label for label, times in Counter(labels).items() if times > 1}
    shown = missed[:n]
    statuses = [said(f"status {one}") for one in shown["status"].tolist()]
    beside_texts = _NUMBERS + max(map(width_of, statuses))
    told = _whereabouts(shown, max((terminal_width() - beside_texts) // 2, _NARROWEST_TEXT))
    widest = min(_WIDEST_QUERY, terminal_width() - _BESIDE_QUERY) if told is None else told.widest
    columns = (shown[name].tolist() for name in ("covered", "ground_truth"))
    rows = [
        ["-" if label in shared else positions[label],
         fitted(printable(str(label)), widest), status,
         said("of").format(f"{found:.0f}", f"{wanted:.0f}")]
        for label, status, found, wanted in zip(shown.index.tolist(), statuses, *columns,
                                                strict=True)
    ]  # fmt: skip
    header = [said(name) for name in ("position", "query", "status", "found")]
    if told is not None:
        header = [*header[:2], said("missed"), *header[2:], said("similarity"), said("rank")]
        rows = [
            [*row[:2], text, *row[2:], similarity, rank]
            for row, text, similarity, rank in zip(rows, *told.columns, strict=True)
        ]
    print_cells(header, rows, names=2 if told is None else 3, widest=_WIDEST_STATUS)
    if len(missed) > n:
        click.echo(said("more").format(len(missed) - n))


class _Whereabouts(NamedTuple):
    """What is told of the item each query lost: its text, how near what came is, and where."""

    widest: int
    columns: tuple[list[str], list[str], list[str]]


def _whereabouts(shown: pd.DataFrame, widest: int) -> _Whereabouts | None:
    """Return what is told of lost items, in columns of such a width; ``None`` if nothing is."""
    if "missed" not in shown:
        return None
    similarity, rank = (
        shown[f"missed:{name}" if f"missed:{name}" in shown else name]
        for name in ("similarity", "rank")
    )
    texts = [
        "-" if text is None else fitted(printable(text), widest)
        for text in shown["missed"].tolist()
    ]
    # No rank is 0: it stands for none.
    ranks = [str(one or "-") for one in rank.fillna(0).tolist()]
    return _Whereabouts(widest, (texts, list(map(four_digits, similarity.tolist())), ranks))


def print_diagnosis(found: Diagnosis, source: str, signature: str) -> None:
    """Print what most is lost by, how many items have each class, and recall without each cause."""
    from krag_eval.results.diagnosis import sentence

    name = said("standard input") if source == "-" else printable(source)
    items, chunks = len(found.items), found.n_chunks or 0
    title = said("item of" if items == 1 else "items of").format(items, name)
    click.echo(title + said("chunk" if chunks == 1 else "chunks").format(chunks) + "\n")
    typed = {"union": said("with union"), "deeper": said("deeper"), "index": said("with index")}
    print_wrapped(sentence(found, typed, language_of()))
    click.echo()
    counts, steps = found.counts, found.waterfall()
    columns = (steps[name].tolist() for name in ("label", "share", "cumulative"))
    rows = [
        [cause, label, str(counts.pop(cause)), four_digits(share), four_digits(cumulative)]
        for cause, label, share, cumulative in zip(steps.index.tolist(), *columns, strict=True)
    ]
    rows += [[cause, said("not counted"), str(n), "-", "-"] for cause, n in counts.items()]
    header = [said(name) for name in ("class", "micro recall", "items", "share", "cumulative")]
    header[1] = header[1].format(spelled(found.k))
    print_cells(header, rows, names=2)
    print_signature(signature)


def forms_of_diagnosis(found: Diagnosis, signature: str) -> Forms:
    """Return how many items have each class, and recall without each cause, in every format."""
    steps = found.waterfall().reset_index()
    counts = found.counts
    rows = steps.assign(items=[counts[cause] for cause in steps["class"]])
    rows = rows[["class", "label", "items", "share", "cumulative"]]
    return {
        "json": lambda: {
            "k": spelled(found.k),
            "n_items": len(found.items),
            "n_chunks": found.n_chunks,
            "looked_up": None if found.looked_up is None else found.looked_up._asdict(),
            "classes": records_of(rows),
            "counts": counts,
            "signature": signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


def forms_of_misses(missed: pd.DataFrame, n: int, k: str, signature: str) -> Forms:
    """Return the first of the queries that lost something, in every format."""
    whole = {name: "Int64" for name in ("covered", "ground_truth", "rank") if name in missed}
    rows = missed[:n].reset_index().astype(whole)
    if len(missed) > n:
        click.echo(said("list all").format(len(missed) - n, len(missed)), err=True)
    return {
        "json": lambda: {
            "k": k,
            "n_misses": len(missed),
            "misses": records_of(rows),
            "signature": signature,
        },
        "csv": lambda: rows,
        "markdown": lambda: rows,
    }


def print_signature(signature: str, *, whole: bool = True) -> None:
    """Print what the numbers depend on, wrapped between its parts.

    Args:
        signature: All of it.
        whole: Whether to print what goes without saying, too.
    """
    from rich.cells import cell_len

    line, parts = _WORDS[language_of()]["signature"], signature.split(" | ")
    if not whole:
        parts[0] = parts[0].replace(_COVERAGE_BY_DEFAULT, "coverage")
        told = [
            one for one in parts if not one.startswith(_SHOWN_BESIDE) and one not in _BY_DEFAULT
        ]
        parts = [*told, "…"]
    for number, part in enumerate(parts):
        added = f" | {part}" if number else part
        if number and cell_len(line + added) > terminal_width():
            click.echo(line)
            line = " " * 10
        line += added
    click.echo(line)


def print_wrapped(text: str) -> None:
    """Print a sentence, continued below where it is too long for one line."""
    width = min(terminal_width(), _WIDTH)  # longer lines are hard to read
    # A letter of two columns counts as two.
    filled = "".join(one + "\0" * (width_of(one) - 1) for one in text)
    lines = textwrap.fill(filled, width, subsequent_indent="  ", break_on_hyphens=False)
    click.echo(lines.replace("\0", ""))


def print_table(
    corner: str,
    header: Sequence[str],
    rows: Mapping[str, Sequence[float]],
    *,
    widest: int = WIDEST,
) -> None:
    """Print named rows of numbers, to four digits; what is undefined is a dash."""
    cells = [[name, *map(four_digits, values)] for name, values in rows.items()]
    print_cells([corner, *header], cells, widest=widest)


def print_cells(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: int = 1,
    widest: int = WIDEST,
    apart: int = 3,
) -> None:
    """Print a table whose first columns are names, to the left, and the others are values.

    A header may have several lines. Values that do not fit beside the others are continued below,
    after the names again.
    """
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    room, fitting = terminal_width(), len(header)
    sizes = [
        max(cell_len(line) for cell in column for line in cell.split("\n"))
        for column in zip(header, *rows, strict=True)
    ]
    sizes = [*sizes[:names], *(min(size, widest) for size in sizes[names:])]
    while fitting > names + 1 and sum(sizes[:fitting]) + apart * (fitting - 1) > room:
        fitting -= 1
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, apart - 1, 0, 0)
    )
    for position, name in enumerate(header[:fitting]):
        # What is longer than its column is continued below itself.
        to_the_right = {"justify": "right", "max_width": widest} if position >= names else {}
        table.add_column(name, overflow="fold", **to_the_right)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row[:fitting])
    # Without a height, rich takes a terminal that knows no colours for one of 80 columns.
    Console(width=room, height=25, highlight=False, markup=False, emoji=False).print(table)
    click.echo()
    if fitting < len(header):
        rest = [[*row[:names], *row[fitting:]] for row in (header, *rows)]
        print_cells(rest[0], rest[1:], names=names, widest=widest, apart=apart)


def four_digits(value: float) -> str:
    """Return a number as it is printed.

    >>> four_digits(2 / 3), four_digits(float("nan"))
    ('0.6667', '-')
    """
    return f"{value:.4f}" if value == value else "-"


def pronounce(report: GateReport) -> Verdict:
    """Print what passed, and to standard error first what did not; return the verdict.

    Which queries of the two results were left out is printed after them.
    """
    from krag_eval.statistics.gates import WORDS

    for gate in report.by_outcome:
        verdict = WORDS[report.language][gate.outcome]
        click.echo(f"{verdict}: {printable(gate.reason)}", err=gate.outcome != "passed")
    if report.note:
        click.echo(printable(report.note))
    return Verdict.GOOD_ENOUGH if report.passed else Verdict.NOT_GOOD_ENOUGH


def note_verdict(new: str, result: EvaluationResult, report: HistoryReport) -> None:
    """Write into a saved result what became of its gate, so that no later one is held to a failure.

    It is written under every name that it has in the folder of the history, too.

    Warns:
        KragEvalWarning: If a file cannot be written, or holds another result by now.
    """
    from krag_eval.results.saved import note_gate

    files = {os.path.realpath(file): file for file in (*report.itself, new)}
    for file in files.values():
        try:
            note_gate(file, report.noted, result)
        except (OSError, Refusal) as error:
            why = error.problem if isinstance(error, Refusal) else error.strerror or error
            told = _WORDS[language_of()]["not noted"]
            warn(told.format(new=printable(file), error=why))
