"""``--lang`` and KRAG_EVAL_LANG: every command in Korean, with the numbers it has in English."""

import os
import re
from pathlib import Path

import pytest
from cli_runs import run, written

from krag_eval._language import LANGUAGES, SPOKEN
from krag_eval._text import width_of
from krag_eval.cli import main

CHUNKS = [
    "도서관은 평일 오전 아홉 시에 문을 엽니다.",
    "책은 한 번에 세 권까지 빌릴 수 있습니다.",
    "주말에는 열람실을 열지 않고 반납함만 씁니다.",
    "회원증을 만들려면 신분증을 가져오세요.",
]
LISTS = {"a": [[0], [3, 1], [0], []], "b": [[0], [1], [2], []]}
CUTTING = """
def all_of(text): return [text]
def first(chunks, n=4): return lambda question: chunks[:n]
"""
SWEEP = """
corpus = "chunks.jsonl"
questions = "a.jsonl"
k = 2
budget = 20
folder = "kept"
splitters = {all = "cutting:all_of"}
retrievers = {four = "cutting:first", one = {call = "cutting:first", n = 1}}
"""


@pytest.fixture(autouse=True)
def _no_language(monkeypatch):
    """Leave the language to the tests, whatever the one who runs them speaks."""
    monkeypatch.delenv("KRAG_EVAL_LANG", raising=False)


def numbers(text):
    """Return the numbers in a text, wherever a language puts them."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


def in_both(line):
    """Return what a command prints in English and in Korean."""
    return [run(f"--lang {one} {line}").stdout for one in LANGUAGES]


@pytest.fixture
def _files():
    """Write a file for every command."""
    for name, lists in LISTS.items():
        written(f"{name}.jsonl", [
            {"question": f"Q {i}", "actual": [CHUNKS[i]], "predicted": [CHUNKS[n] for n in one]}
            for i, one in enumerate(lists)
        ])  # fmt: skip
        run(f"evaluate {name}.jsonl -k 2 --json {name}.json --texts")
    written("chunks.jsonl", CHUNKS)
    written("pairs.jsonl", [
        {"actual": CHUNKS[0], "predicted": CHUNKS[n], "relevant": n == 0} for n in (0, 1)
    ])  # fmt: skip
    texts = {"cutting.py": CUTTING, "sweep.toml": SWEEP, "q.qrels": "q1 0 d1 1\n",
             "r.run": "q1 Q0 d1 1 0.5 tag\n"}  # fmt: skip
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")


#: What is typed, and what stands in the answer in Korean.
COMMANDS = {
    "evaluate a.jsonl -k 2 --intervals --by items": "a.jsonl의 질문 4개",
    "trec q.qrels r.run -k 5": "q.qrels의 주제 1개",
    "demo": "같은 검색 결과를 다른 매처로 판정하면:",
    "misses a.jsonl -k 2": "@2 기준으로 질문 4개 중 2개에서 정답을 놓쳤습니다",
    "explain a.jsonl 0 -k 2": "1위에서 찾음",
    "diagnose a.jsonl --index chunks.jsonl -k 1": "순위가 완벽하면",
    "report a.jsonl -k 2 -o page.html": "page.html 저장 완료(HTML 보고서)",
    "history . --metric recall@2": "평가 시각(UTC)",
    "compare a.jsonl b.jsonl -k 2": "질문 4개 비교",
    "plan a.json b.json --metric recall@2 --detect 0.05": "차이를 확인하려면 질문이 ",
    "gate b.json --baseline a.json --metric recall@2": "통과: macro_recall@2 0.5000 → 0.7500",
    "calibrate pairs.jsonl": "최적 임계값",
    "sweep sweep.toml": "질문 4개로 조합 2개를 비교했습니다.",
    "audit a.jsonl --index chunks.jsonl": "질문 4개, 정답 항목 4개, 청크 4개를 점검했습니다.",
}


def test_every_command_is_here():
    """A new one is to be added to the table."""
    assert {one.split()[0] for one in COMMANDS} == {*main.commands}


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_speak_korean(command):
    """With the same numbers, in any form."""
    name = command.split()[0]
    if name == "sweep":  # what is kept is said from the second time on
        run(command)
    english, korean = run(command), run(f"--lang ko {command}")
    assert english.exit_code == korean.exit_code
    assert COMMANDS[command] in korean.stdout
    assert COMMANDS[command] not in english.stdout
    assert numbers(korean.stdout) == numbers(english.stdout)
    if not any(one.name == "format" for one in main.commands[name].params):
        return
    first, second = in_both(f"{command} --format markdown")
    # The columns of trec are tools and runs; those that machines read stay as they are.
    assert (first != second) is (name != "trec")
    first, second = (
        numbers("\n".join(re.findall(r"^\| (?!latency).*", told, re.MULTILINE)))
        for told in (first, second)
    )
    assert first == second
    one_table = command.removesuffix(" --by items")  # CSV has no room for slices
    first, second = in_both(f"{one_table} --format csv")
    assert first.splitlines()[0] == second.splitlines()[0]


def test_where_the_language_is_told(monkeypatch):
    """Before or behind the name of the command, or by the variable; what stands behind decides."""
    english, korean = in_both("audit sample.jsonl")
    assert run("audit --lang ko sample.jsonl").stdout == korean != english
    assert run("--lang ko audit --lang en sample.jsonl").stdout == english
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert run("audit sample.jsonl").stdout == korean
    assert run("--lang en audit sample.jsonl").stdout == english


@pytest.mark.parametrize("command", ["evaluate", "misses"])
def test_what_is_said_beside_the_answer_is_korean(command):
    """How the file was understood, and what deserves a second look; with the same numbers."""
    row = {"user_input": "언제?", "reference_contexts": CHUNKS[:1],
           "retrieved_contexts": CHUNKS[1:2], "scores": [1]}  # fmt: skip
    written("ragas.jsonl", [row])
    english, korean = (
        run(f"{command} ragas.jsonl -k 1 --lang {one}").stderr.splitlines() for one in LANGUAGES
    )
    assert len(english) == len(korean) >= 3
    assert numbers(" ".join(english)) == numbers(" ".join(korean))
    assert all(re.search("[가-힣]{2}", line.replace("언제", "")) for line in korean)
    assert not any(re.search("[가-힣]", line) for line in english)
    assert any(line.startswith("경고: ") for line in korean)


def test_pages_and_data():
    """A page has its own option, whose default is ``--lang``; keys are those of English."""
    call = "evaluate sample.jsonl -k 2"
    for line, language in (
        (f"{call} --report page.html", "ko"),
        ("report sample.jsonl -k 2 -o page.html --language en", "en"),
    ):
        run(f"--lang ko {line}")
        assert f'<html lang="{language}"' in Path("page.html").read_text("utf-8")
    for data in ("--format json", "--csv -"):
        assert len({*in_both(f"{call} {data}")}) == 1


@pytest.mark.parametrize("command", ["", *main.commands])
def test_help_is_korean(command, monkeypatch):
    """In whatever order it is asked for, and in 80 columns."""
    english = run(f"{command} --help").stdout
    orders = ("--lang ko --help", "--help --lang ko", "-h --lang=ko")
    answers = {run(f"{command} {one}").stdout for one in orders}
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert answers == {run(f"{command} --help").stdout}
    assert run(f"{command} --lang en --help").stdout == english
    (korean,) = answers
    assert max(map(width_of, korean.splitlines())) <= 80
    words = re.compile(r"^[A-Z][a-z]+:|\b(the|is|of)\b|\[(default|required)", re.MULTILINE)
    assert words.search(english)
    assert not words.search(korean)


def test_refusals_are_in_english(monkeypatch):
    """An error is looked up, and asked about, in English; so is a language that there is not."""
    for line in ("evaluate missing.jsonl", "gate", "evaluate a b", "diagnose a.jsonl"):
        assert run(f"--lang ko {line}").stderr == run(line).stderr
    monkeypatch.setenv("KRAG_EVAL_LANG", "kr")
    refused = run("demo")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("krag-eval: error: KRAG_EVAL_LANG must be one of 'en', 'ko'")
    assert run("--help").stderr == refused.stderr
    assert run("demo --lang ko").exit_code == 0
    assert run("misses --lang ko a.jsonl -k 0").exit_code == 2
    assert (SPOKEN.get(), os.environ["KRAG_EVAL_LANG"]) == (None, "kr")
