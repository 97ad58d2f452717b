"""Exit codes of real processes with real pipes: 1 means a broken condition and nothing else."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, invoked, run
from places import ROOT

# As pip writes the script that is on the path, from what pyproject.toml says.
_MODULE, _, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "scripts"
]["krag-eval"].partition(":")
SCRIPT = ["-c", f"import sys; from {_MODULE} import {_FUNCTION}; sys.exit({_FUNCTION}())"]
MODULE = ["-m", "krag_eval"]
ASCII = ENVIRONMENT | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
GATE = ["gate", "result.json", "--fail-under"]
each_program = pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["krag-eval", "python -m"])
on_posix = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of POSIX")


@pytest.fixture(autouse=True)
def _result(sample):
    """Save the sample's result; its mrr@2 is 0.75."""
    run("evaluate sample.jsonl -k 2 --json result.json")


def started(program, *arguments, **options):
    """Start the command as a program of its own."""
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, **{"env": ENVIRONMENT, "stderr": subprocess.PIPE, **options})


def beside(name, code):
    """Let Python load a module that stands in the current folder before all others."""
    Path(f"{name}.py").write_text(code)
    return ENVIRONMENT | {"PYTHONPATH": f"{Path.cwd()}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}


def code_into_a_closed_pipe(program, *arguments, errors=False, **options):
    """Return the exit code of ``krag-eval … | true``: nobody reads, from the beginning on."""
    read, write = os.pipe()
    os.close(read)
    stderr = write if errors else subprocess.PIPE
    with started(program, *arguments, stdout=write, stderr=stderr, **options) as running:
        os.close(write)
        _, said = running.communicate(timeout=60)
    assert errors or not any(one in said for one in (b"Traceback", b"Exception ignored"))
    return running.returncode


@on_posix
@pytest.mark.parametrize(
    ("program", "floor", "errors", "code"),
    [
        (SCRIPT, 0.75, False, 0),
        (SCRIPT, 0.76, True, 1),
        (MODULE, 0.75, True, 0),
        (MODULE, 0.76, False, 1),
    ],
)
def test_a_gate_keeps_its_verdict(program, floor, errors, code):
    """Whatever of its output is read, also of ``2>&1``."""
    assert code_into_a_closed_pipe(program, *GATE, f"mrr@2={floor}", errors=errors) == code


@on_posix
@pytest.mark.parametrize(("floor", "code"), [(0.75, 0), (0.76, 1)])
def test_an_evaluation_keeps_its_verdict_and_writes_its_files(floor, code):
    """The table is printed before they are written."""
    call = ["evaluate", "sample.jsonl", "--fail-under", f"mrr@5={floor}", "--json", "out.json"]
    assert code_into_a_closed_pipe(MODULE, *call) == code
    assert Path("out.json").exists()


@on_posix
@pytest.mark.parametrize(
    ("program", "arguments", "env"),
    [
        (SCRIPT, ["demo"], ENVIRONMENT),
        (MODULE, ["evaluate", "sample.jsonl"], ENVIRONMENT),
        (SCRIPT, ["gate", "--help"], ENVIRONMENT),
        (MODULE, ["demo"], ASCII),  # where click would write around us
    ],
)
def test_without_a_verdict(program, arguments, env):
    """It ends as a program that the signal ends."""
    assert code_into_a_closed_pipe(program, *arguments, env=env) == 141


@on_posix
@pytest.mark.parametrize("errors", [False, True])
def test_a_refusal_stays_one(errors):
    """Also where nobody reads it."""
    call = ["gate", "none.json", "--fail-under", "mrr@2=0.5"]
    assert code_into_a_closed_pipe(MODULE, *call, errors=errors) == 2


@on_posix
def test_the_first_line_is_enough():
    """``| head -1``: the reader goes once it has one line."""
    floors = ["mrr@2=0.1", *["--fail-under", "mrr@2=0.1"] * 4, "--fail-under", "mrr@2=1"]
    with started(MODULE, *GATE, *floors, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline().startswith(b"passed")
        running.stdout.close()
        assert running.wait(60) == 1


@on_posix
@pytest.mark.parametrize(
    ("closed", "options"),
    [(">&-", ""), ("2>&-", ""), (">&- 2>&-", ""), ("<&-", ""), (">&-", "--format json")],
)
def test_a_stream_that_was_closed_before(closed, options):
    """``>&-``: there is no standard output at all; what asks for it is refused."""
    call = f"{sys.executable} -m krag_eval evaluate sample.jsonl --json out.json {options} {closed}"
    done = subprocess.run(call, shell=True, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == (2 if options else 0)
    assert Path("out.json").exists() is not bool(options)
    assert b"Traceback" not in done.stderr


@on_posix
def test_a_verdict_without_any_stream():
    """``>&- 2>&-`` leaves the exit code."""
    call = f"{sys.executable} -m krag_eval {' '.join(GATE)} mrr@2=0.76 >&- 2>&-"
    assert subprocess.run(call, shell=True, env=ENVIRONMENT, check=False).returncode == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "out of memory"),
        (RecursionError(), "RecursionError"),
        (OSError(5, "Input/output error"), "Input/output"),
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
        (EOFError(), "EOFError"),
        (RuntimeError("a mistake"), "RuntimeError"),
        (SystemExit(1), ""),
        (AssertionError(), "AssertionError"),
    ],
)
def test_a_crash_is_no_verdict(monkeypatch, error, said):
    """It ends with 2, whatever it is."""

    def read(*_):
        raise error

    monkeypatch.setattr("krag_eval.core.results.saved.read", read)
    done = invoked(*GATE, "mrr@2=0.1")
    assert (done.exit_code, done.stdout, said in done.stderr) == (2, "", True)
    assert bool(done.stderr) == bool(said)


@each_program
def test_a_package_that_cannot_be_loaded(program):
    """As after a broken installation."""
    env = beside("click", "raise ImportError('damaged')")
    with started(program, *GATE, "mrr@2=0.1", env=env) as running:
        said = running.communicate(timeout=60)[1]
    assert (running.returncode, b"damaged" in said) == (2, True)


@each_program
def test_a_crash_of_the_program(program):
    """A traceback on standard error, and 2."""
    code = "from krag_eval.core.results import saved\ndef read(*_): 1 / 0\nsaved.read = read\n"
    env = beside("sitecustomize", code)
    with started(program, *GATE, "mrr@2=0.1", env=env, stdout=subprocess.PIPE) as running:
        printed, said = running.communicate(timeout=60)
    assert (running.returncode, printed, b"ZeroDivisionError" in said) == (2, b"", True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("floor", [0.1, 0.9])
def test_a_full_disk_behind_standard_output(floor):
    """Said by name; what is left to be flushed at the end changes nothing."""
    call = ["evaluate", "-", "-k", 2, "--fail-under", f"mrr@2={floor}"]
    with (
        open("/dev/full", "wb") as full,
        started(MODULE, *call, stdin=subprocess.PIPE, stdout=full) as running,
    ):
        said = running.communicate(b'{"actual": ["a"], "predicted": ["b", "a"]}', timeout=60)[1]
    assert running.returncode == 2
    assert said.decode() == "krag-eval: error: standard output: No space left on device\n"


@on_posix
@each_program
def test_ctrl_c(program):
    """130, as for every program; here while it waits for a pipe."""
    code = """
import krag_eval.cli, krag_eval.datasets
def read(*_, **__):
    import pathlib, time
    pathlib.Path("reading").touch()
    time.sleep(60)
krag_eval.datasets.read_jsonl = read
"""
    env, pipe = beside("sitecustomize", code), subprocess.PIPE
    call = ["evaluate", "-", "--fail-under", "mrr@5=0.5"]
    with started(program, *call, env=env, stdin=pipe, stdout=pipe) as running:
        while not Path("reading").exists():
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, b"Traceback" in said) == (130, False)
