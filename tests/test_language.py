"""What people are told, in English or Korean: who chooses, and that both say the same."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import krag_eval
from krag_eval import (
    OfflineRetrievalEvaluator,
    audit,
    calibrate,
    compare,
    debias,
    plan_questions,
)
from krag_eval._language import LANGUAGES, SPOKEN, language_of
from krag_eval.datasets import Dataset
from krag_eval.datasets.audit import Audit
from krag_eval.errors import Advice, InvalidInput

HANGUL = re.compile("[가-힣]")
CHUNKS = [
    "도서관은 평일 오전 아홉 시에 문을 엽니다.",
    "책은 한 번에 세 권까지 빌릴 수 있습니다.",
    "주말에는 열람실을 열지 않고 반납함만 씁니다.",
    "회원증을 만들려면 신분증을 가져오세요.",
]


@pytest.fixture(autouse=True)
def _no_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the language to the tests, whatever the one who runs them speaks."""
    monkeypatch.delenv("KRAG_EVAL_LANG", raising=False)


# Who chooses.


def test_the_one_asked_for_comes_first(monkeypatch: pytest.MonkeyPatch):
    """What was asked for, then what the shell was told, then the variable, then English."""
    assert language_of() == "en"
    monkeypatch.setenv("KRAG_EVAL_LANG", "")
    assert language_of() == "en"
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert language_of() == "ko"
    token = SPOKEN.set("en")
    assert (language_of(), language_of("ko")) == ("en", "ko")
    SPOKEN.reset(token)


def test_an_unknown_language_is_refused_by_its_source(monkeypatch: pytest.MonkeyPatch):
    """The argument, or the variable if that said so."""
    with pytest.raises(InvalidInput) as caught:
        language_of("kr")
    assert caught.value.argument == "language"
    monkeypatch.setenv("KRAG_EVAL_LANG", "Korean")
    with pytest.raises(InvalidInput) as caught:
        language_of()
    assert caught.value.argument == "KRAG_EVAL_LANG"


# What is said.


def tables() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every table of phrases in the package, by its name."""
    for found in pkgutil.walk_packages(krag_eval.__path__, "krag_eval."):
        if found.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if isinstance(value, Mapping) and {*value} == {*LANGUAGES}:
                yield f"{found.name}.{name}", value


TABLES = dict(tables())


def placeholders(phrase: str) -> list[str]:
    """Return what is filled into a phrase; numbered ones by their place."""
    names = [name for _, name, _, _ in string.Formatter().parse(phrase) if name is not None]
    return sorted(name or str(place) for place, name in enumerate(names))


@pytest.mark.parametrize("name", TABLES)
def test_both_languages_say_the_same(name: str):
    """The same phrases, with the same things to fill in."""
    english, korean = (TABLES[name][language] for language in LANGUAGES)
    if isinstance(english, str | Advice):
        english, korean = ({"": getattr(one, "text", one)} for one in (english, korean))
    assert english.keys() == korean.keys()
    for key in english:
        if key not in ("demo", "next"):  # nothing is filled in, and braces are JSON
            assert placeholders(english[key]) == placeholders(korean[key]), key


# What is warned of.

ROOT = Path(krag_eval.__file__).parent
#: Two English words, one after the other; the name of a setting or of a phrase is one.
ENGLISH = re.compile("[A-Za-z]{2,},? [A-Za-z]{2,}")


def named(node: ast.AST, name: str) -> bool:
    """Tell whether a node is a call of a function or of a method."""
    if not isinstance(node, ast.Call):
        return False
    return name == getattr(node.func, "id", getattr(node.func, "attr", ""))


def warnings_in(function: ast.AST) -> list[ast.Call]:
    """Return where a function warns by itself."""
    called = (one for name in ("warn", "warn_of") for one in ast.walk(function) if named(one, name))
    return [one for one in called if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]


def values_of(name: str, function: ast.AST) -> Iterator[ast.AST]:
    """Yield what is bound to a name, or put into the list of that name."""
    for one in ast.walk(function):
        targets = getattr(one, "targets", [getattr(one, "target", None)])
        bound = [part for target in targets if target for part in ast.walk(target)]
        if any(isinstance(part, ast.Name) and part.id == name for part in bound):
            yield from filter(None, [getattr(one, "value", None)])
        if named(one, "append") and getattr(one.func.value, "id", "") == name:
            yield from one.args


def texts_in(node: ast.AST, function: ast.AST, seen: set[str]) -> Iterator[str]:
    """Yield the texts that a value is made of, but for those translated or not said."""
    if any(named(node, translated) for translated in ("_", "ngettext", "pgettext")):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.Name) and node.id not in seen:
        seen.add(node.id)
        for value in values_of(node.id, function):
            yield from texts_in(value, function, seen)
    if not isinstance(node, ast.Subscript | ast.Compare | ast.Starred):  # keys, and counts
        for child in ast.iter_child_nodes(node):
            yield from texts_in(child, function, seen)


def warning_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function that warns, by its place."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.name == "errors.py":  # where warn is made
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and warnings_in(node):
                yield f"{path.relative_to(ROOT)}: {node.name}", node


WARNING = dict(warning_functions())


def test_functions_that_warn_are_found():
    """In every room that warns."""
    rooms = {Path(name).parts[0] for name in WARNING}
    assert {"datasets", "matching", "plotting", "results", "retrievers", "scoring", "statistics",
            "streaming"} <= rooms  # fmt: skip


@pytest.mark.parametrize("name", WARNING)
def test_no_warning_is_in_english_alone(name: str):
    """What a function warns of is translated."""
    function = WARNING[name]
    for call in warnings_in(function):
        assert [one for one in texts_in(call, function, set()) if ENGLISH.search(one)] == []


def test_a_warning_in_english_is_seen():
    """However it comes to the function that warns."""
    for body in ('warn("Two words.")', 'warn(f"{x} two words")', 'a = "two words"; warn(a)',
                 'r = []; r.append("two words"); warn(" ".join(r))',
                 'warn(w["x"], Advice("pass {} to do so", k=5))',
                 'if b := "two words": warn(b.format(n=1))'):  # fmt: skip
        function = ast.parse(f"def f():\n    {body}")
        (call,) = warnings_in(function)
        assert any(ENGLISH.search(one) for one in texts_in(call, function, set())), body
    function = ast.parse('def f():\n    much = "next to nothing"; warn(w[much], w["what to do"])')
    assert not any(map(ENGLISH.search, texts_in(warnings_in(function)[0], function, set())))


# In Python.


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, wherever a language puts them."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


def result(predicted: list[list[str]] | None = None) -> Any:
    """Return four queries: found, found second, missed, nothing retrieved."""
    lists = [[CHUNKS[0]], [CHUNKS[3], CHUNKS[1]], [CHUNKS[0], CHUNKS[1]], []]
    tags = {"유형": ["가", "가", "나", "나"]}
    evaluator = OfflineRetrievalEvaluator(
        [[one] for one in CHUNKS], predicted or lists, "coverage", tags=tags
    )
    return evaluator.evaluate(2)


def test_explanations():
    """As asked of the result, or of the explanation."""
    told = result().explain(1, language="ko")
    lines = str(told).splitlines()
    assert lines[:2] == ["질문 1", "모두 찾음: 상위 2개 안에서 정답 항목 1개 중 1개 찾음, 검색된 "
                         "문서 2개"]  # fmt: skip
    assert "2위에서 찾음" in str(told)
    assert told.to_text(language="en").startswith("Query 1\nperfect: 1 of 1 items found within")
    assert ">판정</th>" in told.to_html()
    missed = result().explain(2).to_text(language="ko")
    assert "놓침: 연속한 글자 12개 이상이 겹치는 문서가 없음" in missed


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_gates():
    """The verdict stays what it is; the reasons are what is worded."""
    english, korean = (
        result().check({"recall@2": 0.8, "mean_rank@2": 2}, language=one) for one in LANGUAGES
    )
    assert [one.passed for one in korean.gates] == [one.passed for one in english.gates]
    assert korean.failures == ["macro_recall@2 = 0.5000, 하한선 0.8보다 낮습니다"]
    assert repr(korean).splitlines() == [
        "실패: macro_recall@2 = 0.5000, 하한선 0.8보다 낮습니다",
        "통과: mean_rank@2 = 1.5000, 상한선 2 이하입니다",
    ]
    worse = result([[]] * 4).check(baseline=result(), metric="recall@2", max_drop=1, language="ko")
    assert worse.gates[0].reason == (
        "macro_recall@2 0.5000 → 0.0000, 허용 범위(1)보다 나빠지지 않았습니다. 이 질문들만으로는 "
        "1.0000까지의 하락은 배제할 수 없습니다"
    )


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_comparisons_and_slices():
    """With the words of the report."""
    comparison = compare({"전": result(), "후": result([[one] for one in CHUNKS])}, "recall@2")
    told = comparison.summary(language="ko")
    assert told.startswith("macro_recall@2 기준으로는 두 시스템(전, 후) 사이에 유의한 차이가")
    assert comparison.to_markdown("ko").startswith("| a | b | 지표 | a의 값 | b의 값 |")
    assert comparison.to_markdown() == comparison.to_markdown("en")
    slices = result().by("유형", metrics="recall")
    assert slices.summary("ko") == "나머지 질문과 유의한 차이가 확인된 슬라이스가 없습니다."
    diagnosis = result().diagnose(CHUNKS, k=1)
    assert (
        diagnosis.waterfall("ko")
        .drop(columns="label")
        .equals(diagnosis.waterfall().drop(columns="label"))
    )


def test_calibrations():
    """Numbers are written as they are in English."""
    pairs = [(one, one, True) for one in CHUNKS] + [(CHUNKS[0], CHUNKS[1], False)]
    found = calibrate("coverage", pairs, n_resamples=50)
    assert found.summary("ko").startswith(
        "coverage(min_run=5,tokenizer=auto(words,letters)) 임계값 조정: 5쌍(관련 있음 4쌍)\n최적 "
    )
    assert numbers(found.summary("ko")) == numbers(found.summary("en"))
    ax = found.plot(language="ko")
    assert ax.get_xlabel() == "임계값"


def estimates() -> Iterator[Any]:
    """Yield what is said of few labels: with and without a gain, of one system and of two."""
    rng = np.random.default_rng(0)
    people, others = rng.random(40), rng.random(400).tolist()
    for judge in (people, rng.random(40), [0.5] * 40, 1 - people, people / 2 + 0.5):
        yield debias(human=people.tolist(), judge=list(judge), unlabelled=others)
    yield debias(human=[0.1, 0.9] * 20, judge=[0.1, 0.9] * 20, unlabelled=[0.95] * 400)
    for better in (0, 0.3):
        values = {"전": people.tolist(), "후": (people + better).tolist()}
        others_of = {"전": others, "후": [one + better for one in others]}
        yield debias(human=values, judge=values, unlabelled=others_of)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize("place", range(8))
def test_estimates_from_few_labels(place: int, monkeypatch: pytest.MonkeyPatch):
    """With the same numbers, in sentences and in the table."""
    found = [*estimates()][place]
    assert numbers(found.summary("ko")) == numbers(found.summary("en"))
    assert found.summary("ko").splitlines()[-1].startswith("라벨을 붙인 질문 40개가 전체 질문 ")
    assert found.summary() == found.summary("en")
    english = repr(found)
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert "사람만" in repr(found)
    assert numbers(repr(found)) == numbers(english)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_predictions(monkeypatch: pytest.MonkeyPatch):
    """Whether there are queries enough or not."""
    rng = np.random.default_rng(1)
    lists = [rng.permutation(CHUNKS).tolist() for _ in range(200)]
    for n in (200, 8):
        evaluator = OfflineRetrievalEvaluator([[CHUNKS[0]]] * n, lists[:n])
        first = [float(one[0] == CHUNKS[0]) for one in lists[:n]]
        for scores in (first, rng.random(n)):
            found = evaluator.evaluate([1, 3], metrics=["recall"]).predicts(scores, n_resamples=100)
            assert numbers(found.summary("ko")) == numbers(found.summary("en"))
            assert HANGUL.search(found.summary("ko"))
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert repr(found).startswith("지표")


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_documents_to_judge():
    """None, one or several of them; of one, Korean leaves the number out as well."""

    def ranked(*documents: str) -> Any:
        evaluator = OfflineRetrievalEvaluator(
            [["a"]] * 2, [documents, ["a"]], judged=[["a", "n"]] * 2
        )
        return evaluator.evaluate(2)

    for documents, said in ((["n"], "값은 바뀌지 않습니다"), (["u"], "문서 하나를"),
                            (["u", "v"], "문서 2개를")):  # fmt: skip
        found = compare(ranked("n"), ranked(*documents), metric="precision@2").to_judge()
        assert said in found.summary("ko")
        assert numbers(found.summary("ko")) == numbers(found.summary("en"))


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize("clusters", [None, "source"])
def test_plans(clusters: str | None):
    """Of one system and of two; its picture, too."""
    tags = {"source": [f"책 {i // 4}" for i in range(80)]}
    first, second = (
        OfflineRetrievalEvaluator(
            [["a"]] * 80, [["x" if i in misses else "a"] for i in range(80)], tags=tags
        ).evaluate(1)
        for misses in (range(8), range(4, 20))
    )
    comparison = compare({"전": first, "후": second}, "recall@1", clusters=clusters)
    for pilot in (first, comparison):
        plan = plan_questions(pilot, "recall@1", detect=0.05, clusters=clusters)
        assert plan.summary("ko").startswith("macro_recall@1 기준으로 0.050의 차이를 확인하려면 ")
        assert numbers(plan.summary("ko")) == numbers(plan.summary("en"))
        assert plan.plot(language="ko").get_xlabel() == "질문 수"
    told = comparison.summary("ko").splitlines()
    assert numbers("\n".join(told)) == numbers(comparison.summary("en"))
    assert "source" in told[-1]


def test_audits(tmp_path: Path):
    """An audit is written in one language, which is kept with it; in English, nothing is."""
    dataset = Dataset(["a", "b"], [["없는 문서입니다."], [CHUNKS[0]]], questions=["언제?", "언제?"])
    found = audit(dataset, CHUNKS, language="ko")
    assert found.summary().splitlines()[0] == "질문 2개, 정답 항목 2개, 청크 4개를 점검했습니다."
    assert found.findings["dangling"].said == "정답 문서 2개 중 1개가 색인에 없습니다"
    assert found.findings["dangling"].rows[0].concerns == "글자 7개 중 0개만 청크에 있음"
    assert repr(found.check("dangling")).startswith("실패: dangling: 정답 문서 2개 중 1개")
    found.to_json(tmp_path / "audit.json")
    assert Audit.from_json(tmp_path / "audit.json") == found
    audit(dataset, CHUNKS).to_json(tmp_path / "audit.json")
    assert "language" not in json.loads((tmp_path / "audit.json").read_text())


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_what_objects_are_called_when_shown(monkeypatch: pytest.MonkeyPatch):
    """What ``print`` shows first, with the numbers it has in English."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]], "coverage")
    shown = (evaluator, evaluator.evaluate(1), Dataset(["a"], [["a"]]),
             audit(Dataset(["a"], [["a"]]), language="ko"))  # fmt: skip
    for one in shown[:-1]:
        assert not HANGUL.search(repr(one))
    english = [numbers(repr(one)) for one in shown]
    budgets = result().budget_to_recall(0.5), result().budget_to_recall(1)
    english += [numbers(str(one)) for one in budgets]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    texts = [*map(repr, shown), *map(str, budgets)]
    assert [numbers(text) for text in texts] == english
    assert [text.splitlines()[0] for text in texts[:3]] == [
        "OfflineRetrievalEvaluator: 질문 1개, 매처 "
        "coverage(min_run=5,tokenizer=auto(words,letters)), 임계값 0.8",
        "질문 1개 평가 결과",
        "Dataset: 질문 1개, 아직 검색 결과 없음",
    ]
    assert "질문 1개, 정답 항목 1개를 점검했습니다." in texts[3]
    assert texts[4].startswith("macro 재현율 0.5에 이르는 예산: ")
    assert evaluator.evaluate(1).to_markdown().startswith("| 지표 | @1 macro |")
    assert evaluator.evaluate(1).to_markdown("en").startswith("| metric | @1 macro |")


NOTHING = (
    "매처 text 기준으로는 질문 1개에서 정답과 일치하는 문서가 하나도 없습니다(매처의 조건을 "
    "만족하는 "
    '문서가 없음). 정답은 구절이고 검색기가 돌려주는 것은 청크라면 matcher="contains"나 '
    'matcher="coverage"로, 양쪽에 id가 있으면 matcher="id"로 평가해 보세요.'
)


@pytest.mark.parametrize(
    ("predicted", "options", "said"),
    [
        ([["b"]], {}, NOTHING),
        ([[]], {}, "하나뿐인 질문에 대해 검색된 문서가 없습니다. "),
        ([["a", " "]], {}, "정답 문서 0개와 검색된 문서 1개의 본문이 비었거나 공백뿐입니다. "),
        ([["a"]], {"grade_key": "등급"}, "grade_key='등급': 메타데이터에 이 키가 있는 정답 문서가"),
        ([["b c d"]], {"matcher": "fuzzy"}, "매처 fuzzy(scorer=ratio) 기준으로는"),
    ],
)
def test_warnings_of_an_evaluator(
    predicted: list[list[str]], options: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
):
    """In the language of who reads them, and as they were in English."""
    for language in LANGUAGES:
        monkeypatch.setenv("KRAG_EVAL_LANG", language)
        with pytest.warns(krag_eval.KragEvalWarning) as caught:
            OfflineRetrievalEvaluator([["a"]], predicted, **options).calculate_recall(1)
        (found,) = caught
        assert str(found.message).startswith(said) == (language == "ko")
        assert bool(HANGUL.search(str(found.message).replace("등급", ""))) == (language == "ko")


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_the_variable_is_what_objects_are_shown_in(monkeypatch: pytest.MonkeyPatch):
    """Of what takes no argument, as ``print`` and a notebook; columns stay as they are."""
    one = result()
    columns = list(one.explain(0).predicted.columns)
    english = [repr(one.explain(0)), repr(one.diagnose(CHUNKS)), repr(one.by("items"))]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    korean = [repr(one.explain(0)), repr(one.diagnose(CHUNKS)), repr(one.by("items"))]
    for first, second in zip(english, korean, strict=True):
        assert HANGUL.search(second)
        assert numbers(first) == numbers(second)
    assert list(one.explain(0).predicted.columns) == columns
    with pytest.warns(krag_eval.KragEvalWarning, match="신뢰구간을 구한 질문이 4개뿐입니다"):
        one.confidence_intervals(n_resamples=100)
