"""How much of the package one call passes through: modules and functions, imports warm.

    python benchmarks/hops.py [--list]

Counts every Python function of krag_eval that runs (``sys.setprofile``), once each, on the second
call: the first one imports. A reader who follows the call has to visit as many places.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from krag_eval import OfflineRetrievalEvaluator, compare, sweep
from krag_eval.cli import main

ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]


def passed(call: Callable[[], Any]) -> set[tuple[str, str, int]]:
    """Return module, name and line of every function of the package that a call runs."""
    seen: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        ours = module.partition(".")[0] == "krag_eval"
        code = frame.f_code
        # Comprehensions, and what dataclasses write for themselves, are nothing to read.
        if event == "call" and ours and "<" not in (code.co_name[0], code.co_filename[0]):
            seen.add((module, code.co_qualname, code.co_firstlineno))

    call()  # imports, and what is made once
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


def recall() -> dict[str, float]:
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED).calculate_recall(k=5)


def shell(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        main(["evaluate", str(path)], standalone_mode=False)


def of_two() -> object:
    results = {
        "a": OfflineRetrievalEvaluator(ACTUAL, PREDICTED).evaluate(),
        "b": OfflineRetrievalEvaluator(ACTUAL, ACTUAL).evaluate(),
    }
    return compare(results, "ndcg@5")


def of_cells() -> object:
    rows = [{"question": "When?", "actual": ["At nine."]}, {"question": "Who?", "actual": ["Ada."]}]
    return sweep(
        corpus=["At nine.", "Ada."],
        questions=rows,
        splitters={"whole": lambda text: [text]},
        retrievers={
            "all": lambda chunks: lambda question: chunks,
            "last": lambda chunks: lambda question: chunks[-1:],
        },
    )


def counted() -> dict[str, set[tuple[str, str, int]]]:
    """Return what each of the calls passes through."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "queries.jsonl")
        rows = zip(ACTUAL, PREDICTED, strict=True)
        path.write_text(
            "".join(
                json.dumps({"question": str(i), "actual": actual, "predicted": predicted}) + "\n"
                for i, (actual, predicted) in enumerate(rows)
            )
        )
        calls = {
            "recall": recall,
            "krag-eval evaluate": lambda: shell(path),
            "compare": of_two,
            "sweep": of_cells,
        }
        return {name: passed(call) for name, call in calls.items()}


def run() -> None:
    for name, seen in counted().items():
        modules = {module for module, _, _ in seen}
        print(f"{name}: {len(modules)} modules, {len(seen)} functions")
        if "--list" in sys.argv:
            for module, function, line in sorted(seen):
                print(f"    {module}:{line} {function}")


if __name__ == "__main__":
    run()
