"""What an environment holds because krag_eval is in it: packages and megabytes.

    python3 -m venv fresh && fresh/bin/pip install . && fresh/bin/python docs/measured/installed.py

The table of docs/architecture.md is made of what it prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata

NEEDED = re.compile(r"\s*([A-Za-z0-9._-]+)")


def spelled(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


INSTALLED = {spelled(one.metadata["Name"]): one for one in metadata.distributions()}


def needs(name: str) -> set[str]:
    """Return what a package needs, as far as it is installed; extras are left out."""
    lines = INSTALLED[name].requires or ()
    found = {
        spelled(match[1])
        for line in lines
        if "extra ==" not in line and (match := NEEDED.match(line))
    }
    return found & INSTALLED.keys()


def tree(roots: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += needs(name)
    return seen


def megabytes(names: Iterable[str]) -> float:
    files = (file.locate() for name in names for file in INSTALLED[name].files or ())
    return sum(path.stat().st_size for path in files if path.exists()) / 1e6


def main() -> None:
    everything, direct = tree(["krag-eval"]), needs("krag-eval")
    own = megabytes(["krag-eval"])
    print(f"{len(everything)} packages, {megabytes(everything):.0f} MB; krag-eval {own:.0f} MB")
    print(f"{'package':16}{'MB':>6}{'goes':>6}{'MB':>6}  with it")
    for name in sorted(direct, key=lambda one: -megabytes([one])):
        gone = everything - {"krag-eval"} - tree(direct - {name})
        with_it = ", ".join(sorted(gone - {name}))
        print(f"{name:16}{megabytes([name]):6.0f}{len(gone):6}{megabytes(gone):6.0f}  {with_it}")


if __name__ == "__main__":
    main()
