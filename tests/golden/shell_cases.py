"""The commands whose output is kept, and those that are refused."""

from __future__ import annotations

FORMATS = ("table", "json", "csv", "markdown")
_FORMATTED = (
    "evaluate run.jsonl -m coverage",
    "evaluate run.jsonl --intervals --by corpus -k 3",
    "evaluate run.jsonl -m coverage --budget 60 --metric all -k 3",
    "trec graded.qrels spread.run tied.run",
    "misses run.jsonl -m coverage -k 3 -n 5",
    "diagnose run.jsonl --index chunks.jsonl -m coverage -k 3",
    "history runs",
    "compare old.json new.json --metric recall@5,ndcg@5",
    "compare run.jsonl worse.jsonl -m coverage -k 3 --metric recall@3 --clusters source",
    "gate new.json --baseline old.json --metric ndcg@5 --max-drop 0.02",
    "gate new.json --baseline old.json --metric ndcg@5 --by corpus",
    "gate new.json --history runs --metric recall@5",
    "gate new.json --fail-under recall@5=0.3 --fail-under ndcg@5=0.99",
    "plan old.json new.json --detect 0.1 --metric recall@5",
    "calibrate pairs.csv",
    "audit run.jsonl --index chunks.jsonl",
    "sweep sweep.toml",
)
_ONCE = (
    "demo",
    "--version",
    "explain run.jsonl --query {question} -m coverage -k 3",
    "explain run.jsonl --query {question} --full -k 3",
    "evaluate run.csv",
    "evaluate run.jsonl --json saved.json --csv rows.csv",
    "evaluate run.jsonl -m coverage --fail-under macro_recall@5=0.9",
    "evaluate run.jsonl -m rougeL --threshold 0.7 --criteria partial --conventions trec -k 1,3",
    "evaluate run.jsonl --chunk-size 10 --per-query rows.jsonl",
    "evaluate run.jsonl -m coverage --report page.html",
    "evaluate run.jsonl -m coverage --by corpus --report page.html -k 3",
    "report old.json -o page.html",
    "report run.jsonl -o page.html -m coverage --index chunks.jsonl --by corpus -k 3",
    "compare old.json new.json --report page.html --markdown table.md --latex table.tex",
    "compare run.jsonl worse.jsonl -m coverage -k 3 --metric recall@3 --report page.html",
    "diagnose run.jsonl --index chunks.jsonl -m coverage -k 3 --report page.html --json found.json",
    "audit run.jsonl --index chunks.jsonl --fail-on twins,quoted --json found.json",
    "evaluate result_0.1.0.json",
)
_HELP = (
    "evaluate", "trec", "demo", "misses", "explain", "diagnose", "report", "history", "compare",
    "gate", "plan", "calibrate", "sweep", "audit",
)  # fmt: skip
_REFUSED = (
    "evaluate missing.jsonl",
    "evaluate bad.jsonl",
    "evaluate empty.jsonl",
    "evaluate damaged.json",
    "evaluate run.jsonl -m covrage",
    "evaluate run.jsonl -m coverage(run=3)",
    "evaluate run.jsonl -m coverage(threshold=80)",
    "evaluate run.jsonl --threshold 80",
    "evaluate run.jsonl --threshold 0.5",
    "evaluate run.jsonl -k 0",
    "evaluate run.jsonl -k five",
    "evaluate run.jsonl -k 1.5",
    "evaluate run.jsonl --budget -3",
    "evaluate run.jsonl --metric recal@5",
    "evaluate run.jsonl --metric recall@7",
    "evaluate run.jsonl --criteria some",
    "evaluate run.jsonl --conventions trek",
    "evaluate run.jsonl --conventions gain=square",
    "evaluate run.jsonl --averaging none",
    "evaluate run.jsonl --by nothing",
    "evaluate run.jsonl --fail-under recall@5",
    "evaluate run.jsonl --fail-under recall@5=80",
    "evaluate run.jsonl --fail-under recall@7=0.5",
    "evaluate run.jsonl --question-field asked",
    "evaluate run.jsonl --actual-field truth",
    "evaluate run.jsonl --predicted-field hits",
    "evaluate run.jsonl --json run.jsonl",
    "evaluate run.jsonl --report page.pdf",
    "evaluate run.jsonl --plot chart.txt",
    "evaluate run.jsonl --json a.json --csv a.json",
    "evaluate run.jsonl --jobs 0",
    "evaluate run.jsonl --chunk-size 0",
    "evaluate run.jsonl worse.jsonl",
    "evaluate run.jsonl --out a.json",
    "evaluate run.jsonl --encoding latin-x",
    "evaluate run.csv --delimiter ;;",
    "eval run.jsonl",
    "trec graded.qrels",
    "trec missing.qrels spread.run",
    "trec spread.run graded.qrels",
    "misses run.jsonl -n 0",
    "explain run.jsonl",
    "explain run.jsonl --query nobody-asked",
    "diagnose run.jsonl --depth 1 -k 3",
    "diagnose run.jsonl --index missing.jsonl",
    "report old.json",
    "report old.json -o page.txt",
    "history missing",
    "history run.jsonl",
    "history runs --last 0",
    "compare old.json",
    "compare old.json new.json --metric recall@7",
    "compare old.json new.json --baseline other",
    "compare old.json result_0.1.0.json",
    "compare old.json damaged.json",
    "compare old.json new.json --clusters nothing",
    "gate new.json",
    "gate new.json --baseline old.json",
    "gate new.json --baseline old.json --metric recall@5 --max-drop 2",
    "gate new.json --baseline damaged.json --metric recall@5",
    "gate new.json --history runs --metric recall@9",
    "plan old.json --detect 0",
    "plan old.json --detect 0.1 --power 2",
    "calibrate run.csv",
    "calibrate pairs.csv -m nothing",
    "sweep missing.toml",
    "sweep run.jsonl",
    "audit run.jsonl --fail-on nothing",
    "audit missing.jsonl",
    "demo run.jsonl",
)


def _split(case: str) -> tuple[str, ...]:
    return tuple(case.split())


def commands(language: str) -> list[tuple[str, ...]]:
    """Return the commands whose whole output is kept, with the language asked for."""
    asked = "몇 살부터 가입할 수 있고, 미성년자는 무엇이 필요한가요?"
    formatted = [(*_split(case), "--format", one) for case in _FORMATTED for one in FORMATS]
    once = [
        tuple(asked if part == "{question}" else part for part in _split(case)) for case in _ONCE
    ]
    helped = [("--help",), *((one, "--help") for one in _HELP)]
    return [("--lang", language, *case) for case in [*formatted, *once, *helped]]


def refused() -> list[tuple[str, ...]]:
    """Return the commands that are refused."""
    return [_split(case) for case in _REFUSED]
