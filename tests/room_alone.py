"""Run the tests of a room with no other room there: ``python tests/room_alone.py comparison``.

In a copy of the project are the core, the faces, the room and what it declares. Its tests pass
there, and so they pass whichever of the other rooms is deleted; ``core`` stands for no room at all.
A test that touches one of those is about both, and is skipped; how many there are is printed. That
nothing of the package imports what it does not declare, ``test_rooms.py`` holds.

The shell has the commands of all rooms. Its own tests are not tried; it is there where a room has a
command.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
sys.path[:0] = [str(ROOT), str(TESTS / "package")]

from test_rooms import FACES, MAY_IMPORT, PACKAGE  # noqa: E402

#: What tests read of the project, beside the package and their folder.
READ = (
    "conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md", "benchmarks", "docs",
    *(f"tests/{name}" for name in ("conftest.py", "shared", "data", "golden", "example_plugin")),
)  # fmt: skip

# This face loads the readers at once.
NEEDS = MAY_IMPORT | {"datasets": {"formats", "loading"}}


def declared(room: str) -> set[str]:
    """Return the rooms that a room needs, itself among them; no face leads on to others."""
    needed = {"cli"} if (PACKAGE / room / "command.py").exists() else set()
    more = {room} - {"core"}
    while more := more - needed:
        needed |= more
        more = {other for one in more for other in NEEDS.get(one, ())}
    return needed - FACES


def run(room: str) -> str:
    """Run the tests of a room in a copy without the rooms that it does not need."""
    gone = MAY_IMPORT.keys() - declared(room)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for path in (*READ, f"tests/{room}", "krag_eval"):
            copied = shutil.copytree if (ROOT / path).is_dir() else shutil.copy
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            copied(ROOT / path, copy / path)
        for other in gone:
            shutil.rmtree(copy / "krag_eval" / other)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{room}"]
        command += ["-n", "auto", "--dist", "loadfile", "-p", "rooms_gone"]
        if "integrations" in gone:  # pytest would load its plugin
            command += ["-p", "no:krag_eval"]
        path = os.pathsep.join([folder, str(copy / "tests" / "shared")])
        environment = {**os.environ, "PYTHONPATH": path, "KRAG_EVAL_ROOMS_GONE": " ".join(gone)}
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{room} without {sorted(gone)}:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name} alone: {run(name)}", flush=True)
