"""What people are told, in English or Korean: who chooses, and that both say the same."""

import ast
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import recorder
from refusals import blamed
from results_made import read_back

import krag_eval
from krag_eval import (
    OfflineRetrievalEvaluator,
    audit,
    calibrate,
    compare,
    debias,
    plan_questions,
)
from krag_eval.core.language import LANGUAGES, SPOKEN, language_of
from krag_eval.core.results.latency import RetrievalRun
from krag_eval.datasets import Dataset

HANGUL = re.compile("[가-힣]")


@pytest.fixture(autouse=True)
def _no_language(monkeypatch):
    """Leave the language to the tests, whatever the one who runs them speaks."""
    monkeypatch.delenv("KRAG_EVAL_LANG", raising=False)


# Who chooses.


def test_the_one_asked_for_comes_first(monkeypatch):
    """What was asked for, then what the shell was told, then the variable, then English."""
    assert language_of() == "en"
    monkeypatch.setenv("KRAG_EVAL_LANG", "")
    assert language_of() == "en"
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert language_of() == "ko"
    token = SPOKEN.set("en")
    assert (language_of(), language_of("ko")) == ("en", "ko")
    SPOKEN.reset(token)


def test_an_unknown_language_is_refused_by_its_source(monkeypatch):
    """The argument, or the variable if that said so."""
    with blamed("language"):
        language_of("kr")
    monkeypatch.setenv("KRAG_EVAL_LANG", "Korean")
    with blamed("KRAG_EVAL_LANG"):
        language_of()


# What is warned of.

ROOT = Path(krag_eval.__file__).parent
#: Two English words, one after the other; the name of a setting or of a phrase is one.
ENGLISH = re.compile("[A-Za-z]{2,},? [A-Za-z]{2,}")


def named(node, name):
    """Tell whether a node is a call of a function or of a method."""
    if not isinstance(node, ast.Call):
        return False
    return name == getattr(node.func, "id", getattr(node.func, "attr", ""))


def warnings_in(function):
    """Return where a function warns by itself."""
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call)]
    return [one for one in calls if getattr(one.func, "id", "") in ("warn", "warn_of")]


def values_of(name, function):
    """Yield what is bound to a name, or put into the list of that name."""
    for one in ast.walk(function):
        targets = getattr(one, "targets", [getattr(one, "target", None)])
        bound = [part for target in targets if target for part in ast.walk(target)]
        if any(isinstance(part, ast.Name) and part.id == name for part in bound):
            yield from filter(None, [getattr(one, "value", None)])
        if named(one, "append") and getattr(one.func.value, "id", "") == name:
            yield from one.args


def texts_in(node, function, seen):
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


def functions():
    """Yield every function, one that warns or not, by its place."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.name == "errors.py":  # where warn is made
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(ROOT)}: {node.name}", node


def test_no_warning_is_in_english_alone():
    """What a function warns of is translated, in every room that warns."""
    rooms = set()
    for name, function in functions():
        for call in warnings_in(function):
            rooms.add(Path(name).parts[0])
            texts = texts_in(call, function, set())
            assert [one for one in texts if ENGLISH.search(one)] == [], name
    assert {"asking", "comparison", "core", "lab", "plotting", "streaming"} <= rooms


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


def numbers(text):
    """Return the numbers in a text, wherever a language puts them; without the widths of a page."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", html.unescape(re.sub(r"<[^<>]*>", " ", text))))


ENGLISH_TYPES, KOREAN_TYPES = (recorder.read(f"types.{language}.txt") for language in LANGUAGES)


# In Korean one counts words where the other names their number, and an audit keeps its language.
SAME = [one for one in ENGLISH_TYPES
        if not re.match(r"audit.to_json|explanation of another\.(?!to_json)", one)]  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_both_languages_tell_the_same_numbers(case):
    """Of every type of result, in every form that is written down."""
    assert numbers(ENGLISH_TYPES[case]) == numbers(KOREAN_TYPES[case])


CHUNKS = [
    "도서관은 평일 오전 아홉 시에 문을 엽니다.",
    "책은 한 번에 세 권까지 빌릴 수 있습니다.",
    "주말에는 열람실을 열지 않고 반납함만 씁니다.",
    "회원증을 만들려면 신분증을 가져오세요.",
]


def result(predicted=None):
    """Return four queries: found, found second, missed, nothing retrieved."""
    lists = [[CHUNKS[0]], [CHUNKS[3], CHUNKS[1]], [CHUNKS[0], CHUNKS[1]], []]
    tags = {"유형": ["가", "가", "나", "나"]}
    evaluator = OfflineRetrievalEvaluator(
        [[one] for one in CHUNKS], predicted or lists, "coverage", tags=tags
    )
    return evaluator.evaluate(2)


def compared():
    return compare({"전": result(), "후": result([[one] for one in CHUNKS])}, "recall@2")


def calibrated():
    pairs = [(one, one, True) for one in CHUNKS] + [(CHUNKS[0], CHUNKS[1], False)]
    return calibrate("coverage", pairs, n_resamples=50)


DATASET = Dataset(["a", "b"], [["없는 문서입니다."], [CHUNKS[0]]], questions=["언제?", "언제?"])
DOORS: dict[str, Callable[..., Any]] = {
    "explain": lambda **how: result().explain(1, **how).to_text(),
    "to_text": lambda **how: result().explain(1).to_text(**how),
    "to_html": lambda **how: result().explain(1).to_html(**how),
    "check": lambda **how: repr(result().check({"recall@2": 0.8, "mean_rank@2": 2}, **how)),
    "check a baseline": lambda **how: repr(
        result([[]] * 4).check(baseline=result(), metric="recall@2", max_drop=1, **how)),
    "summary": lambda **how: compared().summary(**how),
    "to_markdown": lambda **how: compared().to_markdown(**how),
    "to_latex": lambda **how: compared().to_latex(**how),
    "slices": lambda **how: result().by("유형", metrics="recall").summary(**how),
    "waterfall": lambda **how: result().diagnose(CHUNKS, k=1).waterfall(**how).to_csv(),
    "row_names": lambda **how: str(OfflineRetrievalEvaluator(
        [["a", "b"]], [["a"]]).evaluate(1).row_names(**how)),
    "calibration": lambda **how: calibrated().summary(**how),
    "audit": lambda **how: audit(DATASET, CHUNKS, **how).summary(),
    "latency": lambda **how: RetrievalRun(np.array([1.0, 2.0])).summary(**how),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize("door", DOORS)
def test_a_door_speaks_as_asked_or_as_the_variable_says(door, monkeypatch):
    """With the same numbers, in English if nobody asked for anything else."""
    told = {language: DOORS[door](language=language) for language in LANGUAGES}
    assert DOORS[door]() == told["en"]
    assert numbers(told["ko"]) == numbers(told["en"])
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert DOORS[door]() == told["ko"] != told["en"]
    assert DOORS[door](language="en") == told["en"]


def estimates():
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


def predictions():
    """Yield what is said of a score that predicts or not, of queries enough or not."""
    rng = np.random.default_rng(1)
    lists = [rng.permutation(CHUNKS).tolist() for _ in range(200)]
    for n in (200, 8):
        evaluator = OfflineRetrievalEvaluator([[CHUNKS[0]]] * n, lists[:n])
        first = [float(one[0] == CHUNKS[0]) for one in lists[:n]]
        for scores in (first, rng.random(n)):
            yield evaluator.evaluate([1], metrics=["recall"]).predicts(scores, n_resamples=100)


def to_judge():
    """Yield no document to judge, one and two."""
    judged = [["a", "n"]] * 2
    for documents in (["n"], ["u"], ["u", "v"]):
        first, second = (
            OfflineRetrievalEvaluator([["a"]] * 2, [one, ["a"]], judged=judged).evaluate(2)
            for one in (["n"], documents)
        )
        yield compare(first, second, metric="precision@2").to_judge()


def plans():
    """Yield plans by one system and by two, by questions and by clusters."""
    tags = {"source": [f"책 {i // 4}" for i in range(80)]}
    first, second = (
        OfflineRetrievalEvaluator(
            [["a"]] * 80, [["x" if i in misses else "a"] for i in range(80)], tags=tags
        ).evaluate(1)
        for misses in (range(8), range(4, 20))
    )
    for clusters in (None, "source"):
        comparison = compare({"전": first, "후": second}, "recall@1", clusters=clusters)
        yield comparison
        for pilot in (first, comparison):
            yield plan_questions(pilot, "recall@1", detect=0.05, clusters=clusters)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
@pytest.mark.parametrize("several", [estimates, predictions, to_judge, plans])
def test_sentences_that_depend_on_the_case_say_the_same(several, monkeypatch):
    """The same numbers in Korean, whatever the case is; one is told apart by its words alone."""
    found = list(several())
    english = [(one.summary(), repr(one)) for one in found]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    for one, (said, shown) in zip(found, english, strict=True):
        assert HANGUL.search(one.summary())
        assert numbers(one.summary()) == numbers(said)
        assert numbers(repr(one)) == numbers(shown)


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_a_single_document_to_judge_has_no_number():
    """In Korean as in English."""
    told = [one.summary("ko") for one in to_judge()]
    for said, summary in zip(("값은 바뀌지", "문서 하나를", "문서 2개를"), told, strict=True):
        assert said in summary


def test_an_audit_keeps_its_language(tmp_path):
    """It is written in one, which is kept with it; in English, nothing is."""
    found = audit(DATASET, CHUNKS, language="ko")
    assert found.findings["dangling"].said == "정답 문서 2개 중 1개가 색인에 없습니다"
    assert found.findings["dangling"].rows[0].concerns == "글자 7개 중 0개만 청크에 있음"
    assert repr(found.check("dangling")).startswith("실패: dangling: 정답 문서 2개 중 1개")
    assert read_back(found, tmp_path, "audit.json") == found
    audit(DATASET, CHUNKS).to_json(tmp_path / "audit.json")
    assert "language" not in json.loads((tmp_path / "audit.json").read_text())


@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_what_objects_are_called_when_shown(monkeypatch):
    """What ``print`` shows first, with the numbers it has in English."""
    evaluator = OfflineRetrievalEvaluator([["a"]], [["a"]], "coverage")
    shown: list[Any] = [evaluator, Dataset(["a"], [["a"]])]
    shown += [result().budget_to_recall(0.5), result().budget_to_recall(1)]
    english = [str(one) for one in shown]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    korean = [str(one) for one in shown]
    assert list(map(numbers, korean)) == list(map(numbers, english))
    assert [text.splitlines()[0] for text in korean[:2]] == [
        "OfflineRetrievalEvaluator: 질문 1개, 매처 "
        "coverage(min_run=5,tokenizer=auto(words,letters),guard=aligned), "
        "임계값 0.8",
        "Dataset: 질문 1개, 아직 검색 결과 없음",
    ]
    assert korean[2].startswith("macro 재현율 0.5에 이르는 예산: ")
    assert next(iter(result().explain(0).predicted.columns)) == "credit"  # as in English


NOTHING = (
    "매처 text 기준으로는 질문 1개에서 정답과 일치하는 문서가 하나도 없습니다(매처의 조건을 "
    "만족하는 "
    '문서가 없음). 정답은 구절이고 검색기가 돌려주는 것은 청크라면 matcher="contains"나 '
    'matcher="coverage"로, 양쪽에 ID가 있으면 matcher="id"로 평가해 보세요.'
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
def test_warnings_of_an_evaluator(predicted, options, said, monkeypatch):
    """In the language of who reads them, and as they were in English."""
    for language in LANGUAGES:
        monkeypatch.setenv("KRAG_EVAL_LANG", language)
        with pytest.warns(krag_eval.KragEvalWarning) as caught:
            OfflineRetrievalEvaluator([["a"]], predicted, **options).calculate_recall(1)
        (found,) = caught
        assert str(found.message).startswith(said) == (language == "ko")
        assert bool(HANGUL.search(str(found.message).replace("등급", ""))) == (language == "ko")
