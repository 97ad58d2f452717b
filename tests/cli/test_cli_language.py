"""``--lang`` and KRAG_EVAL_LANG: every command in Korean, with the numbers it has in English."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from cli_runs import run

from krag_eval._language import LANGUAGES, SPOKEN
from krag_eval._text import width_of
from krag_eval.cli import main

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


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, wherever a language puts them."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", text))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, the current one, with a file for every command."""
    monkeypatch.chdir(tmp_path)
    lists = {"a": [[CHUNKS[0]], [CHUNKS[3], CHUNKS[1]], [CHUNKS[0]], []],
             "b": [[CHUNKS[0]], [CHUNKS[1]], [CHUNKS[2]], []]}  # fmt: skip
    for name, predicted in lists.items():
        rows = (
            {"question": f"Question {i}", "actual": [CHUNKS[i]], "predicted": some}
            for i, some in enumerate(predicted)
        )
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    (tmp_path / "chunks.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in CHUNKS))
    pairs = [(CHUNKS[0], CHUNKS[0], True), (CHUNKS[0], CHUNKS[1], False)]
    rows = (dict(zip(("actual", "predicted", "relevant"), pair, strict=True)) for pair in pairs)
    (tmp_path / "pairs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "cutting.py").write_text(
        "def all_of(text):\n    return [text]\n\n"
        "def first(chunks, n=4):\n    return lambda question: chunks[:n]\n"
    )
    (tmp_path / "sweep.toml").write_text(
        'corpus = "chunks.jsonl"\nquestions = "a.jsonl"\nk = 2\nbudget = 20\nfolder = "kept"\n'
        'splitters = {all = "cutting:all_of"}\n'
        'retrievers = {four = "cutting:first", one = {call = "cutting:first", n = 1}}\n'
    )
    (tmp_path / "q.qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "r.run").write_text("q1 Q0 d1 1 0.5 tag\n")
    for name in lists:
        run("evaluate", f"{name}.jsonl", "-k", "2", "--json", f"{name}.json", "--texts")
    return tmp_path


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


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["evaluate", "misses"])
def test_what_is_said_beside_the_answer_is_korean(command: str):
    """How the file was understood, and what deserves a second look; with the same numbers."""
    row = {"user_input": "언제?", "reference_contexts": [CHUNKS[0]],
           "retrieved_contexts": [CHUNKS[1]], "scores": [1]}  # fmt: skip
    Path("ragas.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    english, korean = (
        run(command, "ragas.jsonl", "-k", "1", "--lang", one).stderr.splitlines()
        for one in LANGUAGES
    )
    assert len(english) == len(korean) >= 3
    assert numbers(" ".join(english)) == numbers(" ".join(korean))
    assert all(re.search("[가-힣]{2}", line.replace("언제", "")) for line in korean)
    assert not any(re.search("[가-힣]", line) for line in english)
    assert any(line.startswith("경고: ") for line in korean)


#: The commands that print a table in Markdown.
TABLES = [
    command
    for command in COMMANDS
    if any(one.name == "format" for one in main.commands[command.split()[0]].params)
]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", TABLES)
def test_markdown_is_korean(command: str):
    """With the same numbers; the columns that machines read stay as they are."""
    english, korean = (
        run("--lang", one, *command.split(), "--format", "markdown").stdout for one in LANGUAGES
    )
    # The columns of trec are tools and runs.
    assert (korean != english) is not command.startswith("trec")
    tables = ([one for one in told.splitlines() if one.startswith("| ") and "latency" not in one]
              for told in (english, korean))  # fmt: skip
    first, second = (numbers("\n".join(one)) for one in tables)
    assert first == second
    one_table = command.removesuffix(" --by items").split()  # CSV has no room for slices
    first, second = (run("--lang", one, *one_table, "--format", "csv").stdout for one in LANGUAGES)
    assert first.splitlines()[0] == second.splitlines()[0]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_speak_korean(command: str, monkeypatch: pytest.MonkeyPatch):
    """As they are told before or behind their name, or by the variable; with the same numbers."""
    name, *arguments = command.split()
    run(name, *arguments)  # what is kept is said from the second time on
    english = run(name, *arguments)
    answers = [run("--lang", "ko", name, *arguments), run(name, "--lang", "ko", *arguments)]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    answers.append(run(name, *arguments))
    for answer in answers:
        assert answer.exit_code == english.exit_code
        assert COMMANDS[command] in answer.stdout
        assert answer.stdout == answers[0].stdout
        assert COMMANDS[command] not in english.stdout
        assert numbers(answer.stdout) == numbers(english.stdout)
    assert run("--lang", "en", name, *arguments).stdout == english.stdout
    assert run("--lang", "ko", name, "--lang", "en", *arguments).stdout == english.stdout


@pytest.mark.usefixtures("files")
def test_pages_and_data(monkeypatch: pytest.MonkeyPatch):
    """A page has its own option, whose default is ``--lang``; keys are those of English."""
    run("--lang", "ko", "evaluate", "a.jsonl", "-k", "2", "--report", "page.html")
    assert '<html lang="ko"' in Path("page.html").read_text("utf-8")
    run("--lang", "ko", "report", "a.jsonl", "-k", "2", "-o", "page.html", "--language", "en")
    assert '<html lang="en"' in Path("page.html").read_text("utf-8")
    several = [
        run("--lang", one, "evaluate", "a.jsonl", "-k", "2", "--format", "json", "--csv", f"{one}")
        for one in LANGUAGES
    ]
    assert several[0].stdout == several[1].stdout
    assert Path("en").read_text("utf-8") == Path("ko").read_text("utf-8")


@pytest.mark.parametrize("command", ["", *main.commands])
def test_help_is_korean(command: str, monkeypatch: pytest.MonkeyPatch):
    """In whatever order it is asked for, and in 80 columns."""
    typed = command.split()
    english = run(*typed, "--help").stdout
    answers = [
        run(*typed, *order).stdout
        for order in (("--lang", "ko", "--help"), ("--help", "--lang", "ko"), ("-h", "--lang=ko"))
    ]
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    assert answers == [run(*typed, "--help").stdout] * 3
    assert run(*typed, "--lang", "en", "--help").stdout == english
    assert max(map(width_of, answers[0].splitlines())) <= 80
    words = re.compile(r"^[A-Z][a-z]+:|\b(the|is|of)\b|\[(default|required)", re.MULTILINE)
    assert words.search(english)
    assert not words.search(answers[0])


def test_refusals_are_in_english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An error is looked up, and asked about, in English; so is a language that there is not."""
    missing = str(tmp_path / "missing.jsonl")
    assert run("--lang", "ko", "evaluate", missing).stderr == run("evaluate", missing).stderr
    monkeypatch.setenv("KRAG_EVAL_LANG", "kr")
    refused = run("demo")
    assert refused.exit_code == 2
    assert refused.stderr.startswith("krag-eval: error: KRAG_EVAL_LANG must be one of 'en', 'ko'")
    assert run("demo", "--lang", "ko").exit_code == 0
    assert run("misses", "--lang", "ko", "a.jsonl", "-k", "0").exit_code == 2
    assert run("--help").stderr == refused.stderr
    monkeypatch.delenv("KRAG_EVAL_LANG")
    for called in (["gate"], ["evaluate", "a", "b"], ["diagnose", "a.jsonl"]):
        assert run("--lang", "ko", *called).stderr == run(*called).stderr
    monkeypatch.setenv("KRAG_EVAL_LANG", "kr")
    assert SPOKEN.get() is None
    assert os.environ["KRAG_EVAL_LANG"] == "kr"
