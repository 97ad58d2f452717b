"""Whatever is printed fits into the terminal, and nothing is cut without a word."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, SAMPLE, run, written

from krag_eval.cli import output
from krag_eval.core import Table, width_of
from krag_eval.datasets import read_jsonl

PASSAGE = "books may be kept for four weeks and renewed twice"
SWEEP = """
corpus = "chunks.jsonl"
questions = "sample.jsonl"
n_resamples = 100
[splitters]
"lines of a text, as they are" = "textwrap:wrap"
"lines of a text, forty letters each" = { call = "textwrap:wrap", width = 3 }
[retrievers]
"a retriever that returns the first two" = "first_two:make"
"""


def in_a_terminal(columns, line):
    """Run the command as a program in a terminal so wide; return the lines it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = ENVIRONMENT | {"TERM": "dumb"}
    command = [sys.executable, "-m", "krag_eval", *line.split()]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=env):
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
def wide(monkeypatch):
    """Return a function that runs a command at a width, and gives the lines it prints."""

    def ran(columns, line):
        monkeypatch.setattr(output, "terminal_width", lambda: columns)
        return run(line).stdout.splitlines()

    return ran


@pytest.fixture
def _files():
    """Write what every command that prints a table reads, with long names."""
    texts = {
        "another-retriever-with-a-long-name.jsonl": SAMPLE.replace('"doc6", ', ""),
        "chunks.jsonl": '"doc1"\n"doc2"\n"doc5"\n',
        "bm25.run": "t1 Q0 a 1 0.5 x\n",
        "judged.qrels": "t1 0 a 1\n",
        "first_two.py": "def make(chunks): return lambda question: chunks[:2]",
        "sweep.toml": SWEEP,
    }
    for name, text in texts.items():
        Path(name).write_text(text, "utf-8")
    Path("runs").mkdir()
    for name in ("the-first-run-of-all-the-runs-there-are", "second"):
        run(f"evaluate sample.jsonl --json runs/{name}.json")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    "line",
    [
        "evaluate sample.jsonl",
        "evaluate sample.jsonl --intervals",
        "evaluate sample.jsonl --by items",
        "compare sample.jsonl another-retriever-with-a-long-name.jsonl --metric ndcg@3,micro_f1@3",
        "misses sample.jsonl",
        "explain sample.jsonl 1",
        "diagnose sample.jsonl --index chunks.jsonl",
        "audit sample.jsonl --index chunks.jsonl",
        "trec judged.qrels bm25.run",
        "history runs",
        "sweep sweep.toml --allow-module textwrap",
    ],
)
def test_all_lines_fit(line, wide):
    """Into a narrow terminal."""
    narrow = wide(60, line)
    assert len(narrow) >= 5
    # What stands between two bars of the signature stays whole to be copied.
    whole = ("precision_at=k,", "signature: matcher=", "matcher=coverage(")
    assert max(width_of(one) for one in narrow if not any(part in one for part in whole)) <= 60


@pytest.mark.parametrize("columns", [60, 72, 100, 240])
def test_no_number_is_lost(columns, wide):
    """Each average has a value at each of the four cutoffs, beside each other or below."""
    lines = wide(columns, "evaluate sample.jsonl --metric all")
    for name in ("hit_rate", "mrr", "map", "ndcg", "mean_rank"):
        values = re.findall(r"\d\.\d{4}", " ".join(one for one in lines if one.startswith(name)))
        assert len(values) == 4, name


@pytest.mark.parametrize(("columns", "tables"), [(100, 2), (200, 1)])
def test_a_wide_terminal_shows_more_side_by_side(wide, columns, tables):
    """Eight cutoffs of paired averages are two tables in 100 columns, and one in 200."""
    lines = wide(columns, "evaluate sample.jsonl -k 1,2,3,4,5,6,7,8")
    assert sum(line.startswith("metric ") for line in lines) == tables


@pytest.mark.parametrize(("columns", "used"), [(0, 100), (20, 60), (60, 60), (240, 240)])
def test_there_are_at_least_60_columns(monkeypatch, columns, used):
    """A terminal of no size says nothing about it; in a tiny one, lines are wrapped by itself."""
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 40)))
    with open(os.devnull, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert output.terminal_width() == used


def test_elsewhere_there_are_100_columns():
    """In a pipe or a file, whatever the window is."""
    lines = run("evaluate sample.jsonl -k 1,2,3,4").stdout.splitlines()
    assert 80 < max(map(width_of, lines)) <= 100


@pytest.mark.parametrize(("matcher", "cutoffs"), [("text", ""), ("coverage", "-k 1,5,10")])
def test_a_result_fits_a_screen(matcher, cutoffs):
    """Of 24 lines of 80 columns, with the line that was typed and the next prompt: 22 are left."""
    row = {"actual": [PASSAGE], "predicted": ["x", f"now {PASSAGE} again"], "scores": [1.0]}
    written("results.jsonl", [row])
    lines = in_a_terminal(80, f"evaluate results.jsonl --matcher {matcher} {cutoffs}")
    assert lines.pop() == ""  # where the next prompt stands
    assert sum(max(1, -(-width_of(line) // 80)) for line in lines) <= 22
    assert sum(line.startswith("metric ") for line in lines) == 1
    (signature,) = (number for number, line in enumerate(lines) if line.startswith("signature:"))
    assert all(line.startswith("warning: ") for line in lines[signature + 1 :])
    assert f"matcher={matcher} |" in lines[signature]
    assert lines[0].startswith("results.jsonl: 1 column cannot be a tag")


def test_what_coverage_finds_stands_below_the_zeros():
    """At the deepest cutoff, after the table."""
    written("results.jsonl", [{"actual": [PASSAGE], "predicted": ["x", f"now {PASSAGE} again"]}])
    lines = run("evaluate results.jsonl -k 1,2").stderr.splitlines()
    assert lines[-1].endswith("With --matcher coverage: recall@2 1.00.")


def test_all_of_the_signature_when_asked_for(wide, monkeypatch):
    """Or where somebody keeps what is printed."""
    call = "evaluate sample.jsonl -k 2 --no-ground-truth skip -m contains"
    with monkeypatch.context() as patch:
        patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
        *_, short = wide(240, call)
        *_, whole = wide(240, f"{call} --verbose")
    assert short == "signature: matcher=contains | no_ground_truth=skip | …"
    evaluator = read_jsonl("sample.jsonl").evaluator(matcher="contains", no_ground_truth="skip")
    assert whole == f"signature: {evaluator.evaluate(2).signature}"
    assert wide(240, call)[-1] == whole


def test_a_long_name_is_continued_below():
    """Rather than cut."""
    name = "".join(f"{i:03d}" for i in range(60))
    printed = Table.of_cells(["name", "value"], [[name, "0.5000"]]).text(100)
    assert "".join(re.findall(r"^\d+", printed, re.MULTILINE)) == name
    assert "0.5000" in printed
