"""Whatever is printed fits into the terminal, and nothing is cut without a word."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, run

from krag_eval._text import width_of
from krag_eval.datasets import read_jsonl
from krag_eval.presenting import Table

NAMES = ("hit_rate", "mrr", "map", "ndcg", "mean_rank")
SWEEP = """
corpus = "{corpus}"
questions = "{questions}"
n_resamples = 100
[splitters]
"lines of a text, as they are" = "textwrap:wrap"
"lines of a text, forty letters each" = {{ call = "textwrap:wrap", width = 3 }}
[retrievers]
"a retriever that returns the first two" = "first_two:make"
"""


def in_a_terminal(columns: int, *arguments: object, stderr: bool = False) -> list[str]:
    """Run the command as a program in a terminal so wide; return the lines it shows.

    Those of standard error are among them if that is asked for.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "krag_eval", *map(str, arguments)],
        stdout=theirs,
        stderr=theirs if stderr else subprocess.DEVNULL,
        env=ENVIRONMENT | {"TERM": "dumb"},
    ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 2**16):
                shown += part
        except OSError:  # how Linux says that nobody writes any more
            pass
    os.close(ours)
    return [line.rstrip() for line in re.split(r"\r?\n", shown.decode("utf-8"))]


@pytest.fixture
def commands(sample: Path, tmp_path: Path) -> dict[str, list[object]]:
    """Return calls of every command that prints a table."""
    other, chunks = tmp_path / "another-retriever-with-a-long-name.jsonl", tmp_path / "chunks.jsonl"
    other.write_text(SAMPLE.replace('"doc6", ', ""), "utf-8")
    chunks.write_text('"doc1"\n"doc2"\n"doc5"\n', "utf-8")
    run_file, qrels = tmp_path / "bm25.run", tmp_path / "judged.qrels"
    run_file.write_text("t1 Q0 a 1 0.5 x\n", "utf-8")
    qrels.write_text("t1 0 a 1\n", "utf-8")
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("the-first-run-of-all-the-runs-there-are", "second"):
        assert run("evaluate", sample, "--json", runs / f"{name}.json").exit_code == 0
    sweep = tmp_path / "sweep.toml"
    (tmp_path / "first_two.py").write_text("def make(chunks): return lambda question: chunks[:2]")
    sweep.write_text(SWEEP.format(corpus=chunks.name, questions=sample.name), "utf-8")
    return {
        "evaluate": ["evaluate", sample],
        "intervals": ["evaluate", sample, "--intervals"],
        "slices": ["evaluate", sample, "--by", "items"],
        "compare": ["compare", sample, other, "--metric", "ndcg@3,micro_precision@3"],
        "misses": ["misses", sample],
        "explain": ["explain", sample, "1"],
        "diagnose": ["diagnose", sample, "--index", chunks],
        "audit": ["audit", sample, "--index", chunks],
        "trec": ["trec", qrels, run_file],
        "history": ["history", runs],
        "sweep": ["sweep", sweep, "--allow-module", "textwrap"],
    }


@pytest.mark.parametrize(
    "name",
    [
        "evaluate",
        "intervals",
        "slices",
        "compare",
        "misses",
        "explain",
        "diagnose",
        "audit",
        "trec",
        "history",
        "sweep",
    ],
)
def test_all_lines_fit(name: str, commands: dict[str, list[object]]) -> None:
    """Into a narrow terminal."""
    narrow = in_a_terminal(60, *commands[name])
    assert len(narrow) > 5
    # Paths, and what stands between two bars of the signature, stay whole to be copied.
    whole = ("/", "precision_at=k,", "signature: matcher=")
    lines = [line for line in narrow if not any(one in line for one in whole)]
    assert max(map(width_of, lines)) <= 60


@pytest.mark.parametrize("columns", [60, 72, 100, 240])
def test_no_number_is_lost(columns: int, commands: dict[str, list[object]]) -> None:
    """Each average has a value at each of the four cutoffs, beside each other or below."""
    lines = in_a_terminal(columns, *commands["evaluate"])
    for name in NAMES:
        values = re.findall(r"\d\.\d{4}", " ".join(one for one in lines if one.startswith(name)))
        assert len(values) == 4, name


PASSAGE = "books may be kept for four weeks and renewed twice"


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    """Return a file of passages and longer chunks, with a column that can be no tag."""
    path = tmp_path / "results.jsonl"
    row = {"actual": [PASSAGE], "predicted": ["x", f"now {PASSAGE} again"], "scores": [1.0]}
    path.write_text(json.dumps(row) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("cutoffs", [[], ["-k", "1,5,10"]])
@pytest.mark.parametrize("matcher", ["text", "coverage"])
def test_a_result_fits_a_screen(
    passages: Path, matcher: str, cutoffs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 lines of 80 columns, with the line that was typed and the next prompt: 22 are left."""
    monkeypatch.chdir(passages.parent)
    lines = in_a_terminal(
        80, "evaluate", passages.name, "--matcher", matcher, *cutoffs, stderr=True
    )
    assert lines.pop() == ""  # where the next prompt stands
    assert sum(max(1, -(-width_of(line) // 80)) for line in lines) <= 22
    assert sum(line.startswith("metric ") for line in lines) == 1
    (signature,) = (number for number, line in enumerate(lines) if line.startswith("signature:"))
    assert all(line.startswith("warning: ") for line in lines[signature + 1 :])
    assert f"matcher={matcher} |" in lines[signature]
    assert lines[0].startswith("results.jsonl: 1 column cannot be a tag")


def test_what_coverage_finds_stands_below_the_zeros(passages: Path) -> None:
    """At the deepest cutoff, after the table."""
    lines = in_a_terminal(240, "evaluate", passages, "-k", "1,2", stderr=True)
    assert lines[-2].endswith("With --matcher coverage: recall@2 1.00.")


def test_all_of_the_signature_when_asked_for(passages: Path) -> None:
    """Or where somebody keeps what is printed."""
    options = ("evaluate", passages, "-k", "2", "--no-ground-truth", "skip", "-m", "contains")
    *_, short, _ = in_a_terminal(240, *options)
    *_, whole, _ = in_a_terminal(240, *options, "--verbose")
    assert short == "signature: matcher=contains | no_ground_truth=skip | …"
    evaluator = read_jsonl(passages).evaluator(matcher="contains", no_ground_truth="skip")
    assert whole == f"signature: {evaluator.evaluate(2).signature}"
    assert " ".join(run(*options).stdout.split()).endswith(whole)


def test_a_wide_terminal_shows_more_side_by_side(sample: Path) -> None:
    """Eight cutoffs of paired averages are two tables in 100 columns, and one in 200."""
    options = ("evaluate", sample, "-k", "1,2,3,4,5,6,7,8")
    for columns, tables in ((100, 2), (200, 1)):
        lines = in_a_terminal(columns, *options)
        assert sum(line.startswith("metric ") for line in lines) == tables


@pytest.mark.parametrize("columns", [0, 20])
def test_there_are_at_least_60_columns(sample: Path, columns: int) -> None:
    """A terminal of no size says nothing about it; in a tiny one, lines are wrapped by itself."""
    lines = in_a_terminal(columns, "evaluate", sample)
    widest = max(width_of(line) for line in lines if "─" in line)
    assert 40 < widest <= (100 if columns == 0 else 60)


def test_columns_that_do_not_fit_are_continued() -> None:
    """After the names again: of columns of 6 or 7, 2 apart, 11 fit beside the name, then 9."""
    header = ["name", *(f"v{i}" for i in range(20))]
    printed = Table.of_cells(header, [["a", *(f"{i}.0000" for i in range(20))]]).text(100)
    assert printed.count("name") == 2
    assert re.findall(r"\d+\.0000", printed) == [f"{i}.0000" for i in range(20)]
    assert max(map(len, printed.splitlines())) <= 100


def test_a_long_name_is_continued_below() -> None:
    """Rather than cut."""
    name = "".join(f"{i:03d}" for i in range(60))
    printed = Table.of_cells(["name", "value"], [[name, "0.5000"]]).text(100)
    assert "".join(re.findall(r"^\d+", printed, re.MULTILINE)) == name
    assert "0.5000" in printed


def test_elsewhere_there_are_100_columns(sample: Path) -> None:
    """In a pipe or a file, whatever the window is; the line with the name of the file aside."""
    _, *lines = run("evaluate", sample, "-k", "1,2,3,4").stdout.splitlines()
    assert 80 < max(map(width_of, lines)) <= 100
