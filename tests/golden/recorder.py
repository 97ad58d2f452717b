"""What a user sees, written down byte for byte: shell, result types, numbers, pages, files.

``python -m golden.recorder write`` in ``tests/`` writes the files of ``tests/golden/`` anew; a
change of one of them belongs into a commit of its own that says why. ``test_golden.py`` compares.
"""

import contextlib
import json
import math
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any
from unittest import mock

from golden import explanations, inputs, pages, plots, refused, shell_cases

FOLDER = Path(__file__).parent
LANGUAGES = ("en", "ko")
# What libraries of another release may print otherwise: the last digits, and drawings.
_DIGITS = re.compile(r"-?\d+\.\d{12,}(e[-+]\d+)?|-?\d\.\d{12,}(e[-+]\d+)")
_DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
_TEXT_OF_DRAWING = re.compile(r"<text[^>]*>([^<]*)</text>|<!-- (.*?) -->", re.DOTALL)
_STYLE = re.compile(r"<(style|script)\b[^>]*>.*?</\1>", re.DOTALL)
_PLACE = re.compile(r"(?<!\S)--?[a-z][a-z-]*|[\w./]+\.(?:jsonl|json|csv|toml)(?:, line \d+)?")
_CHECKSUM = re.compile(r'("?(?:sha256|checksum|crc32|digest)"?: ?")[0-9a-f]{8,64}"')


def normal(text: str) -> str:
    """Return a text without what differs between machines: 13th digits, drawings, checksums."""
    text = _STYLE.sub(r"<\1>…</\1>", _DRAWING.sub(_drawn, text))
    text = _CHECKSUM.sub(r'\1…"', text)
    return _DIGITS.sub(lambda found: f"{float(found[0]):.12g}", text)


def _drawn(found: re.Match[str]) -> str:
    texts = [a or b for a, b in _TEXT_OF_DRAWING.findall(found[0])]
    return "<svg>" + " | ".join(one.strip() for one in texts if one.strip()) + "</svg>"


@contextlib.contextmanager
def stopped_clock() -> Iterator[None]:
    """Let no time pass while retrievers are asked."""

    def still() -> float:
        return 0.0

    loaded = [one for name, one in sys.modules.items() if name.startswith("krag_eval")]
    with contextlib.ExitStack() as stack:
        for module in [time, *(one for one in loaded if hasattr(one, "perf_counter"))]:
            stack.enter_context(mock.patch.object(module, "perf_counter", still))
        yield


@contextlib.contextmanager
def settled(language: str) -> Iterator[Path]:
    """Stand in a folder with all inputs, in a language, at one moment, 100 columns wide."""
    names = ("KRAG_EVAL_LANG", "SOURCE_DATE_EPOCH", "COLUMNS", "NO_COLOR", "TERM")
    before = {name: os.environ.get(name) for name in names}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
        os.environ |= {"SOURCE_DATE_EPOCH": "1767225600", "KRAG_EVAL_LANG": "en"}
        os.chdir(folder)
        try:
            inputs.write(Path(folder))
            os.environ["KRAG_EVAL_LANG"] = language
            with stopped_clock():
                yield Path(folder)
        finally:
            os.chdir(here)
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def of_shell(language: str) -> dict[str, str]:
    """Run every command in every format: what it printed, its exit code, the files it wrote."""
    with settled(language) as folder:
        return {" ".join(case): _ran(case, folder) for case in shell_cases.commands(language)}


def _ran(case: tuple[str, ...], folder: Path) -> str:
    from click.testing import CliRunner

    from krag_eval.cli import main

    before = {one: one.stat().st_mtime_ns for one in folder.rglob("*") if one.is_file()}
    # Before 8.2 click keeps standard error apart only if asked to.
    apart = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
    result = CliRunner(**apart).invoke(main, list(case))
    parts = [f"exit {result.exit_code}", result.stdout]
    if result.stderr:
        parts.append(f"--- stderr\n{result.stderr}")
    for one in sorted(folder.rglob("*")):
        if one.suffix == ".pyc":  # of a metric of one's own, written or not as Python is told
            continue
        if one.is_file() and before.get(one) != one.stat().st_mtime_ns:
            parts.append(f"--- {one.relative_to(folder).as_posix()}\n{_read(one)}")
            if one not in before:
                one.unlink()
    return normal("\n".join(parts)).replace(str(folder), "FOLDER")


def _read(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix in {".png", ".parquet", ".gz", ".pdf"}:
        return f"({path.suffix})"
    return data.decode("utf-8")


def of_refusals(language: str = "en") -> dict[str, str]:
    """Do what is refused: exit code or error, and the option, file, line or argument blamed."""
    with settled(language) as folder:
        found = {}
        for case in shell_cases.refused():
            ran = _ran(case, folder).replace("krag-eval", "")
            blamed = " ".join(dict.fromkeys(_PLACE.findall(ran)[:3]))
            found[" ".join(case)] = f"{ran.splitlines()[0]}; {blamed}"
        return found


def of_wrong_calls(room: str) -> dict[str, str]:
    """Make the wrong calls of a room: the error, the argument, the query and the place blamed."""
    with settled("en"):
        return {name: refused.told(call) for name, call in refused.calls(room).items()}


#: How a result shows itself, in the order in which a file lists it.
FORMS = (
    "__repr__",
    "_repr_html_",
    "summary",
    "to_markdown",
    "to_latex",
    "to_dict",
    "table",
    "to_json",
    "to_csv",
    "note",
    "signature",
)


def of_types(language: str) -> dict[str, str]:
    """Show every type of result in every form that it has."""
    with settled(language):
        found = {}
        for name, make in inputs.RESULTS.items():
            with warnings.catch_warnings(record=True, action="always") as warned:
                made = make()
                shown = {form: _shown(made, form) for form in FORMS if hasattr(made, form)}
            found |= {f"{name}.{form}": normal(text) for form, text in shown.items()}
            if warned:
                told = dict.fromkeys(str(one.message) for one in warned)
                found[f"{name} warns"] = normal("\n".join(told))
        return found


def _shown(made: Any, form: str) -> str:
    if hasattr(made, "to_csv") and hasattr(made, "columns"):
        return str(made.to_csv(lineterminator="\n")) if form == "to_csv" else "(a frame)"
    value = getattr(made, form)
    if form in ("to_json", "to_csv"):
        path = Path(f"shown.{form.removeprefix('to_')}")
        value(path)
        text = path.read_text("utf-8")
        path.unlink()
        return text
    if callable(value):
        value = value()
    if hasattr(value, "to_csv"):
        return str(value.to_csv(lineterminator="\n"))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return str(value)


def of_numbers() -> dict[str, str]:
    """Compute every metric for every matcher, convention and cutoff."""
    found = {}
    with settled("en"), warnings.catch_warnings(action="ignore"):
        for name, values in inputs.numbers():
            found[name] = "\n".join(
                f"{key} {'nan' if math.isnan(value) else f'{value:.12g}'}"
                for key, value in values.items()
            )
    return found


def of_plots(language: str) -> dict[str, str]:
    """Draw every kind of picture: what is on its axes."""
    with settled(language):
        return {name: plots.told(name) for name in plots.CASES}


def of_explanations(language: str) -> dict[str, str]:
    """Explain what there is to explain, in lines of text."""
    with settled(language):
        return {name: explanations.told(name) for name in explanations.CASES}


def of_pages(language: str) -> dict[str, str]:
    """Write every kind of page: its text, and in English the titles of its pictures."""
    is_english = language == "en"
    with settled(language):
        cases = pages.CASES if is_english else pages.IN_EVERY_LANGUAGE
        return {name: normal(pages.told(name, drawn=is_english)) for name in cases}


#: Golden file -> what makes it.
FILES: dict[str, Callable[[], dict[str, str]]] = {
    **{f"shell.{one}.txt": lambda one=one: of_shell(one) for one in LANGUAGES},
    **{f"types.{one}.txt": lambda one=one: of_types(one) for one in LANGUAGES},
    "refusals.txt": of_refusals,
    **{f"refused/{one}.txt": lambda one=one: of_wrong_calls(one) for one in refused.ROOMS},
    "numbers.txt": of_numbers,
    **{f"explanations.{one}.txt": lambda one=one: of_explanations(one) for one in LANGUAGES},
    **{f"pages.{one}.txt": lambda one=one: of_pages(one) for one in LANGUAGES},
    **{f"plots.{one}.txt": lambda one=one: of_plots(one) for one in LANGUAGES},
}
_HEAD = "=" * 12 + " "


def read(name: str) -> dict[str, str]:
    """Read a golden file: case -> what came of it."""
    parts = (FOLDER / name).read_text("utf-8").split(f"\n{_HEAD}")
    return dict(part.split("\n", 1) for part in parts[1:])


def write(name: str, found: dict[str, str]) -> None:
    """Write a golden file anew."""
    text = "".join(f"\n{_HEAD}{case}\n{told}" for case, told in found.items())
    (FOLDER / name).write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    asked = sys.argv[2:] or list(FILES)
    if sys.argv[1:2] != ["write"] or not set(asked) <= FILES.keys():
        sys.exit(f"python -m golden.recorder write [{'|'.join(FILES)}]")
    for one in asked:
        write(one, FILES[one]())
