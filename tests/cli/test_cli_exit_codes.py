"""Exit codes of real processes with real pipes: 1 means a broken condition and nothing else."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, run

ROOT = Path(__file__).parents[2]
# As pip writes the script that is on the path, from what pyproject.toml says.
_MODULE, _, _FUNCTION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "scripts"
]["krag-eval"].partition(":")
SCRIPT = f"import sys; from {_MODULE} import {_FUNCTION}; sys.exit({_FUNCTION}())"
PROGRAMS = {"krag-eval": ["-c", SCRIPT], "python -m": ["-m", "krag_eval"]}
each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
on_posix = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of POSIX")

# What happens within a command is put there by a module that Python loads when it starts.
CRASHES = {
    "MemoryError": "raise MemoryError",
    "RecursionError": "def f(): f()\n    f()",
    "OSError": "raise OSError(5, 'Input/output error')",
    "BrokenPipeError": "raise BrokenPipeError(32, 'Broken pipe')",
    "EOFError": "raise EOFError",
    "RuntimeError": "raise RuntimeError('a mistake')",
    "SystemExit": "raise SystemExit(1)",
    "AssertionError": "assert False",
}


def started(program: list[str], *arguments: object, **options: object) -> subprocess.Popen[bytes]:
    """Start the command as a program of its own."""
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, **{"env": ENVIRONMENT, **options})  # type: ignore[call-overload]


def code_into_a_closed_pipe(program: list[str], *arguments: object, errors: bool = False) -> int:
    """Return the exit code of ``krag-eval … | true``: nobody reads, from the beginning on."""
    read, write = os.pipe()
    os.close(read)
    stderr = write if errors else subprocess.PIPE
    with started(program, *arguments, stdout=write, stderr=stderr) as running:
        os.close(write)
        _, said = running.communicate(timeout=60)
    assert errors or b"Traceback" not in said
    assert errors or b"Exception ignored" not in said
    return running.returncode


def with_crash(folder: Path, crash: str) -> dict[str, str]:
    """Return an environment in which a result cannot be read without that crash."""
    (folder / "sitecustomize.py").write_text(
        f"from krag_eval.results import saved\ndef read(*_):\n    {crash}\nsaved.read = read\n"
    )
    return ENVIRONMENT | {"PYTHONPATH": f"{folder}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"}


@pytest.fixture
def result(sample: Path, tmp_path: Path) -> Path:
    """Save the sample's result; its mrr@2 is 0.75."""
    path = tmp_path / "result.json"
    run("evaluate", sample, "-k", 2, "--json", path)
    return path


@on_posix
class TestClosedPipes:
    """``| head -0`` and ``| true``."""

    @each_program
    @pytest.mark.parametrize("errors", [False, True])
    @pytest.mark.parametrize(("floor", "code"), [(0.75, 0), (0.76, 1)])
    def test_a_gate_keeps_its_verdict(
        self, result: Path, program: list[str], floor: float, code: int, errors: bool
    ) -> None:
        """Whatever of its output is read, also of ``2>&1``."""
        arguments = ("gate", result, "--fail-under", f"mrr@2={floor}")
        assert code_into_a_closed_pipe(program, *arguments, errors=errors) == code

    @pytest.mark.parametrize(("floor", "code"), [(0.75, 0), (0.76, 1)])
    def test_an_evaluation_keeps_its_verdict_and_writes_its_files(
        self, sample: Path, tmp_path: Path, floor: float, code: int
    ) -> None:
        """The table is printed before they are written."""
        out = tmp_path / "out.json"
        arguments = ("evaluate", sample, "-k", 2, "--fail-under", f"mrr@2={floor}", "--json", out)
        assert code_into_a_closed_pipe(PROGRAMS["python -m"], *arguments) == code
        assert out.exists()

    @each_program
    @pytest.mark.parametrize("arguments", [["demo"], ["evaluate", "{}"], ["gate", "--help"]])
    def test_without_a_verdict(
        self, sample: Path, program: list[str], arguments: list[str]
    ) -> None:
        """As a program that the signal ends."""
        given = [one.format(sample) for one in arguments]
        assert code_into_a_closed_pipe(program, *given) == 141

    def test_a_refusal_stays_one(self, tmp_path: Path) -> None:
        """Also where nobody reads it."""
        arguments = ("gate", tmp_path / "none.json", "--fail-under", "mrr@2=0.5")
        for errors in (False, True):
            assert code_into_a_closed_pipe(["-m", "krag_eval"], *arguments, errors=errors) == 2

    def test_the_first_line_is_enough(self, result: Path) -> None:
        """``| head -1``: the reader goes once it has one line."""
        arguments = ("gate", result, *("--fail-under", "mrr@2=0.1") * 5, "--fail-under", "mrr@2=1")
        with started(
            PROGRAMS["python -m"], *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline().startswith(b"passed")
            running.stdout.close()
            assert running.wait(60) == 1

    @pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
    @pytest.mark.parametrize("arguments", [[], ["--format", "json"]], ids=["table", "json"])
    def test_a_stream_that_was_closed_before(
        self, sample: Path, tmp_path: Path, closed: str, arguments: list[str]
    ) -> None:
        """``>&-``: there is no standard output at all; what asks for it is refused."""
        out = tmp_path / "out.json"
        command = [sys.executable, "-m", "krag_eval", "evaluate", str(sample), "-k", "2"]
        line = f"{shlex.join([*command, '--json', str(out), *arguments])} {closed}"
        done = subprocess.run(line, shell=True, env=ENVIRONMENT, capture_output=True, check=False)
        needed = bool(arguments) and closed.startswith(">&-")
        assert done.returncode == (2 if needed else 0)
        assert out.exists() is not needed
        assert b"Traceback" not in done.stderr

    def test_in_ascii(self) -> None:
        """Where click would write around us."""
        ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
        read, write = os.pipe()
        os.close(read)
        with started(
            PROGRAMS["python -m"],
            "demo",
            stdout=write,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT | ascii_only,
        ) as running:
            os.close(write)
            assert running.communicate(timeout=60)[1] == b""
        assert running.returncode == 141

    @pytest.mark.parametrize(("floor", "code"), [(0.75, 0), (0.76, 1)])
    def test_streams_that_were_never_open(self, result: Path, floor: float, code: int) -> None:
        """``>&- 2>&-``."""
        command = [sys.executable, "-m", "krag_eval", "gate", str(result)]
        command += ["--fail-under", f"mrr@2={floor}"]
        shell = ["sh", "-c", '"$@" >&- 2>&-', "sh", *command]
        assert subprocess.run(shell, env=ENVIRONMENT, timeout=60, check=False).returncode == code


class TestCrashes:
    """What goes wrong without being refused."""

    @each_program
    @pytest.mark.parametrize("crash", CRASHES)
    def test_ends_with_2(
        self, result: Path, tmp_path: Path, program: list[str], crash: str
    ) -> None:
        """A crash is no verdict, whatever it is."""
        with started(
            program,
            *("gate", result, "--fail-under", "mrr@2=0.1"),
            env=with_crash(tmp_path, CRASHES[crash]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running:
            printed, said = running.communicate(timeout=60)
        assert (running.returncode, printed) == (2, b"")
        named = {"MemoryError": b"out of memory", "OSError": b"Input/output", "SystemExit": b""}
        assert named.get(crash, crash.encode()) in said or b"Broken pipe" in said

    @each_program
    def test_a_package_that_cannot_be_loaded(
        self, result: Path, tmp_path: Path, program: list[str]
    ) -> None:
        """As after a broken installation."""
        (tmp_path / "click.py").write_text("raise ImportError('damaged')")
        path = f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"
        with started(
            program,
            *("gate", result, "--fail-under", "mrr@2=0.1"),
            env=ENVIRONMENT | {"PYTHONPATH": path},
            stderr=subprocess.PIPE,
        ) as running:
            said = running.communicate(timeout=60)[1]
        assert running.returncode == 2
        assert b"damaged" in said

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
    @pytest.mark.parametrize("floor", [0.1, 0.9])
    def test_a_full_disk_behind_standard_output(self, result: Path, floor: float) -> None:
        """Said by name; what is left to be flushed at the end changes nothing."""
        with (
            open("/dev/full", "wb") as full,
            started(
                PROGRAMS["python -m"],
                *("evaluate", "-", "-k", 2, "--fail-under", f"mrr@2={floor}"),
                stdin=subprocess.PIPE,
                stdout=full,
                stderr=subprocess.PIPE,
            ) as running,
        ):
            sample = b'{"actual": ["a"], "predicted": ["b", "a"]}'
            said = running.communicate(sample, timeout=60)[1].decode()
        assert running.returncode == 2
        assert said == "krag-eval: error: standard output: No space left on device\n"

    @on_posix
    @each_program
    def test_ctrl_c(self, tmp_path: Path, program: list[str]) -> None:
        """130, as for every program; here while it waits for a pipe."""
        (tmp_path / "sitecustomize.py").write_text(
            "import krag_eval.cli, krag_eval.datasets\n"
            "def read(*_, **__):\n"
            "    import pathlib, time\n"
            f"    pathlib.Path({str(tmp_path / 'reading')!r}).touch()\n"
            "    time.sleep(60)\n"
            "krag_eval.datasets.read_jsonl = read\n"
        )
        path = f"{tmp_path}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"
        with started(
            program,
            *("evaluate", "-", "--fail-under", "mrr@5=0.5"),
            env=ENVIRONMENT | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running:
            while not (tmp_path / "reading").exists():
                assert running.poll() is None
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            _, said = running.communicate(timeout=60)
        assert running.returncode == 130
        assert b"Traceback" not in said
