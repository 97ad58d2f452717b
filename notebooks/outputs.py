"""The outputs that are committed with the notebooks: keep them tidy, and keep them true.

    python notebooks/outputs.py tidy notebooks/*.ipynb      # drop what changes from run to run
    python notebooks/outputs.py compare notebooks executed  # does running give what is shown?

To write the outputs anew:

    python -m pytest --nbmake --overwrite notebooks
    python notebooks/outputs.py tidy notebooks/*.ipynb
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import Any

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
PICTURES = ("image/png", "image/svg+xml")
# What a machine without a Korean font warns of: the pictures are its own, and are not compared.
NO_FONT = ("No installed font can show", "설치된 글꼴로는")
MEASURED = "measured"  # the tag of a cell that shows times, which differ from run to run


def tidy(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a notebook without what changes from run to run: times, versions, cells' names."""
    cells = []
    for number, cell in enumerate(notebook["cells"], start=1):
        tags = cell["metadata"].get("tags")
        kept = cell | {"id": f"cell-{number:02}", "metadata": {"tags": tags} if tags else {}}
        if cell["cell_type"] == "code":
            kept["outputs"] = [_tidy_output(output) for output in _joined(cell["outputs"])]
        cells.append(kept)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _tidy_output(output: dict[str, Any]) -> dict[str, Any]:
    pictures = {kind: data for kind, data in output.get("data", {}).items() if kind in PICTURES}
    return output | {"data": pictures} if pictures else output


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join what a cell printed in several parts: where it is cut depends on the machine's speed."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" and output["name"] == last.get("name"):
            text = "".join(last["text"]) + "".join(output["text"])
            joined[-1] = last | {"text": text.splitlines(keepends=True)}
        else:
            joined.append(output)
    return joined


def shown(notebook: dict[str, Any]) -> list[str]:
    """Return what a reader sees below the code, as lines; a picture is a line that says so."""
    lines = []
    for number, cell in enumerate(notebook["cells"], start=1):
        measured = MEASURED in cell["metadata"].get("tags", ())
        for output in _joined(cell.get("outputs", [])):
            if _is_about_fonts(output):
                continue
            lines.append(f"[cell {number}, {output.get('name', output['output_type'])}]")
            lines.extend(["measured"] if measured else _lines_of(output))
    return lines


def _is_about_fonts(output: dict[str, Any]) -> bool:
    """Tell whether an output holds warnings, of missing fonts alone."""
    told = [line for line in output.get("text", ()) if "Warning: " in line]
    return bool(told) and all(any(one in line for one in NO_FONT) for line in told)


def _lines_of(output: dict[str, Any]) -> list[str]:
    if "data" not in output:  # a stream, or an error
        text = output.get("text") or [output.get("ename", ""), ": ", output.get("evalue", "")]
        return "".join(text).splitlines()
    data = output["data"]
    if any(kind in data for kind in PICTURES):
        return ["a picture"]
    return [line for kind in sorted(data) for line in "".join(data[kind]).splitlines()]


def differences(committed: Path, executed: Path) -> list[str]:
    """Return a unified diff of what each notebook shows in one folder and in the other."""
    found = []
    for path in sorted(committed.glob("*.ipynb")):
        before, after = shown(_read(path)), shown(_read(executed / path.name))
        names = f"{path.name}, committed", f"{path.name}, executed"
        found.extend(difflib.unified_diff(before, after, *names, lineterm=""))
    return found


def _read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def _write(path: Path, notebook: dict[str, Any]) -> None:
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run one of the two commands; return 1 if a notebook does not show what running it gives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tidy").add_argument("notebooks", nargs="+", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("committed", type=Path)
    comparing.add_argument("executed", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "tidy":
        for path in options.notebooks:
            _write(path, tidy(_read(path)))
        return 0
    found = differences(options.committed, options.executed)
    print("\n".join(found) or "The notebooks show what running them gives.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
