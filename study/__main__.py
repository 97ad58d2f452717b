"""Make every number and picture of the study.

    python -m study FOLDER [--kept FOLDER] [--check]

FOLDER holds the texts that are listed in study/README.md, in files of any name. Numbers, tables and
pictures go to study/results; with ``--check`` nothing is written, and what would be is compared
with what is there. ``--kept`` names a folder that similarities are kept in, so that a run that was
stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from study import consequence, page, pictures, tables
from study.measure import Measured, described
from study.pairs import all_pairs
from study.similarities import similarities
from study.sources import Folder
from study.systems import not_run, systems

RESULTS = Path(__file__).parent / "results"
#: The systems that the page and its picture show, from top to bottom.
SHOWN = (
    "text",
    "contains",
    "fuzzy partial",
    "ROUGE-L",
    "ROUGE-L recall",
    "ragas",
    "continuous-eval ROUGE",
    "Chroma",
    "krag ROUGE-L",
    "MiniLM",
    "multilingual USE",
    "no guard",
    "coverage",
    "tolerant",
)


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(prog="python -m study", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the texts are")
    parser.add_argument("--kept", type=Path, help="a folder that similarities are kept in")
    parser.add_argument("--check", action="store_true", help="compare with study/results")
    given = parser.parse_args(arguments)
    folder = Folder(given.folder)
    files = made(folder, given.kept)
    if given.check:
        other = [name for name, content in files.items() if not is_same(RESULTS / name, content)]
        print(f"{len(files)} files, other than in study/results: {', '.join(other) or 'none'}")
        return int(bool(other))
    for name, content in files.items():
        path = RESULTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    print(f"{len(files)} files in {os.path.relpath(RESULTS)}")
    return 0


def made(folder: Folder, kept: Path | None = None) -> dict[str, bytes]:
    """Return every file of the results, by its name."""
    who = systems()
    made_of = all_pairs(folder)
    measured = Measured.of(made_of.pairs, who, lambda one, pairs: similarities(one, pairs, kept))
    found: dict[str, Any] = {
        "made_with": made_with(),
        "systems": {
            name: {"family": one.family, "threshold": one.threshold, "definition": one.definition}
            for name, one in who.items()
        },
        "not_run": not_run(),
        "left_out": dict(made_of.left_out),
        "parts_of_sentences": described(made_of.pairs),
        **measured.numbers(),
    }
    of_consequence = consequence.consequence(folder, who, kept)
    asked = of_consequence.pop("decisions")
    files = {
        "decisions.json": as_json(found),
        "consequence.json": as_json(of_consequence),
        "decisions.md": tables.tables(found).encode(),
        "consequence.md": consequence.tables(of_consequence).encode(),
    }
    for name, lines in asked.items():
        files[f"decided/consequence_{name}.csv.gz"] = packed(lines)
    by_kind: dict[str, list[str]] = {}
    head = f'pair,part,right,"{"|".join(who)}"'
    for kind, line in measured.accepted_lines():
        by_kind.setdefault(kind, [head]).append(line)
    for kind, lines in by_kind.items():
        files[f"decided/{kind.replace(', ', '_')}.csv.gz"] = packed(lines)
    return files | page.tables(found, of_consequence, SHOWN) | pictures.pictures(found, SHOWN)


def made_with() -> str:
    """Return what numbers depend on beside the texts."""
    libraries = ("krag-eval", "numpy", "scipy", "rapidfuzz", "rouge-score")
    python = f"Python {platform.python_version()}"
    return ", ".join([python, *(f"{name} {version(name)}" for name in libraries)])


def as_json(found: Any) -> bytes:
    """Return one record per line."""
    lines = []
    for key, value in found.items():
        if isinstance(value, list):
            records = ",\n  ".join(json.dumps(one, ensure_ascii=False) for one in value)
            lines.append(f"{json.dumps(key)}: [\n  {records}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, indent=1)}")
    return ("{\n " + ",\n ".join(lines) + "\n}\n").encode()


def packed(lines: Iterable[str]) -> bytes:
    """Return lines packed by gzip, without the time."""
    file = io.BytesIO()
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as unpacked:
        unpacked.write("\n".join([*lines, ""]).encode())
    return file.getvalue()


def is_same(path: Path, content: bytes) -> bool:
    """Tell whether a file holds this, unpacked."""
    unpack = gzip.decompress if path.suffix == ".gz" else bytes
    return path.exists() and unpack(path.read_bytes()) == unpack(content)


if __name__ == "__main__":
    sys.exit(main())
