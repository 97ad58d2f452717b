"""Processes of their own, which have loaded nothing yet."""

import json
import os
import subprocess
import sys
from pathlib import Path

import krag_eval

PACKAGE = str(Path(krag_eval.__file__).parents[1])


def printed(code, *arguments, cwd=None, **environment):
    """Return what code prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": PACKAGE, **environment},
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code):
    """Return the top-level packages that a fresh process has loaded after running the code."""
    show = "import sys, json; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    return set(json.loads(printed(f"{code}\n{show}").splitlines()[-1]))
