"""The rooms: which module may import which. A new module has to be placed here on purpose.

Data flows one way, documents, matching, relevance, metrics, averages, results, and left never
imports right. What is imported for type checkers alone, or inside a function, counts as much: it
is knowledge all the same.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import krag_eval

PACKAGE = Path(krag_eval.__file__).parent

# Shared by any room: wording and warnings.
_WORDS = {"messages", "options"}
# What every matcher is made of.
_MATCHER = {"documents", "matching.base", "matching.joins", *_WORDS}
_TOKENIZING_MATCHER = {*_MATCHER, "matching.numbering", "matching.tokenizers"}
# What may be known of a result by whoever shows, compares or keeps it.
_RESULT = {"results", "cutoffs", "conventions", *_WORDS}

#: Module -> modules of the package it may import. The package itself (its version) is for all.
MAY_IMPORT: dict[str, set[str]] = {
    # the words and the points everybody may know
    "messages": set(),
    "options": {"messages"},
    "cutoffs": _WORDS,
    "digits": set(),
    "conventions": _WORDS,
    "files": _WORDS,
    "progress": set(),
    # documents -> matching
    "documents": _WORDS,
    "matching": set(),
    "matching.joins": {"documents", *_WORDS},
    "matching.parallel": _WORDS,
    "matching.base": {
        "documents", "matching.combined", "matching.joins", "matching.parallel", *_WORDS,
    },
    "matching.plaintext": set(),
    "matching.tokenizers": {"matching.plaintext", *_WORDS},
    "matching.stemming": set(),
    "matching.numbering": {"matching.joins", "matching.parallel", "matching.tokenizers"},
    "matching.waiting": {"matching.joins", *_WORDS},
    "matching.exact": _MATCHER,
    "matching.fuzzy": {*_MATCHER, "matching.waiting"},
    "matching.embedding": {*_MATCHER, "matching.models"},
    "matching.models": set(),
    "matching.rouge": {*_TOKENIZING_MATCHER, "matching.stemming", "matching.waiting"},
    "matching.coverage": {*_TOKENIZING_MATCHER, "matching.plaintext"},
    "matching.combined": _MATCHER,
    "matching.names": {"matching.base", *_WORDS},
    # -> relevance -> metrics -> averages -> results
    "relevance": {"matching.joins", *_WORDS},
    "metrics": {"relevance", "conventions", "digits", *_WORDS},
    "tables": {"averages", "relevance", "metrics", "conventions", *_WORDS},
    "averages": {"conventions", *_WORDS},
    "summaries": {"averages", "conventions", "cutoffs", *_WORDS},
    "rows": {"cutoffs", *_WORDS},
    "row_files": {"averages", "cutoffs", "files", "rows", "summaries", *_WORDS},
    "results": {
        "conventions", "cutoffs", "evidence", "explanation", "files", "gates", "labels",
        "report", "retrieval", "rows", "saved", "summaries", "thresholds", "uncertainty", *_WORDS,
    },
    # what a result can show beside numbers
    "labels": _WORDS,
    "retrieval": _WORDS,
    "agreement": set(),
    "presentation": {"agreement", *_WORDS},
    "evidence": {"documents", "relevance", *_WORDS},
    "outcomes": {"evidence", "relevance", *_WORDS},
    "explanation": {
        "agreement", "conventions", "cutoffs", "evidence", "outcomes", "presentation", "relevance",
        *_WORDS,
    },
    "thresholds": {
        "averages", "conventions", "cutoffs", "evidence", "metrics", "relevance", "tables", *_WORDS,
    },
    "saved": {
        "conventions", "cutoffs", "evidence", "files", "relevance", "retrieval", "row_files",
        "rows", "summaries", *_WORDS,
    },
    # what is made of results
    "disputes": {"conventions", *_WORDS},
    "uncertainty": {"averages", "digits", *_RESULT},
    "pairing": {"digits", "uncertainty", *_RESULT},
    "comparison_texts": {"pairing"},
    "comparison": {
        "averages", "comparability", "comparison_texts", "pairing", "uncertainty", "plotting",
        "report", *_RESULT,
    },
    "comparability": _RESULT,
    "gates": {"averages", "comparison", *_RESULT},
    "calibration": {"documents", "matching.base", "matching.names", "plotting", *_WORDS},
    "report": {"averages", "comparison", "files", "plotting", "uncertainty", *_RESULT},
    # what wires and feeds
    "plans": {
        "conventions", "cutoffs", "documents", "matching.base", "matching.joins", "matching.names",
        "relevance", *_WORDS,
    },
    "findings": {"documents", "matching.base", "relevance", *_WORDS},
    "evaluator": {
        "averages", "conventions", "cutoffs", "disputes", "documents", "evidence", "findings",
        "matching.base", "matching.joins", "matching.parallel", "metrics", "plans", "plotting",
        "relevance", "results", "rows", "tables", *_WORDS,
    },
    "partitions": {
        "cutoffs", "documents", "findings", "metrics", "plans", "relevance", "results", "rows",
        "summaries", "tables", *_WORDS,
    },
    "data": set(),
    "__main__": {"cli"},
}  # fmt: skip

#: Package -> what its modules may import beside each other.
PACKAGES: dict[str, set[str]] = {
    "datasets": {
        "conventions", "documents", "evaluator", "files", "integrations.payloads", *_WORDS,
    },
    "plotting": {
        "averages", "calibration", "comparison", "files", "presentation", *_RESULT,
    },
    # They gather documents and hand them to the evaluator; metrics and matchers by name alone.
    "retrievers": {
        "comparison", "datasets", "datasets.base", "documents", "evaluator", "files",
        "matching.base", "metrics", "progress", "retrieval", *_RESULT,
    },
    # Chunk by chunk over files: thin, between the readers and the evaluation of a run in parts.
    "streaming": {
        "cutoffs", "datasets.base", "datasets.jsonl", "datasets.streams", "files",
        "matching.parallel", "metrics", "partitions", "progress", "results", "row_files", "rows",
        *_WORDS,
    },
    "report": {
        "comparison", "explanation", "files", "outcomes", "plotting", "presentation", "rows",
        "uncertainty", *_RESULT,
    },
    # The command line knows everything a user of the package knows, and no formula.
    "cli": {
        "calibration", "comparison", "conventions", "cutoffs", "datasets", "datasets.judged",
        "datasets.streams", "datasets.trec", "documents", "evaluator", "files", "gates",
        "matching.base", "matching.combined", "matching.coverage", "matching.fuzzy",
        "matching.names",
        "matching.rouge", "matching.tokenizers", "plotting", "presentation", "report", "results",
        "row_files", "rows", "saved", "streaming", "uncertainty",
        *_WORDS,
    },
    # Other tools: thin, so they know what a user knows, and how one query came out.
    "integrations": {
        "conventions", "cutoffs", "documents", "evaluator", "matching.base", "matching.names",
        "metrics", "outcomes", "results", "tables", *_WORDS,
    },
    # Engines: how rows go to workers and come back; what is done with them is partitions' business.
    "distributed": {"documents", "metrics", "partitions", "results", "rows", *_WORDS},
    # krag's names and numbers: thin, so they know the public parts and nothing of metrics.
    "compat": {
        "conventions", "cutoffs", "datasets.base", "datasets.literals", "documents", "evaluator",
        "matching.base", "matching.embedding", "matching.exact", "matching.joins", "matching.names",
        "matching.rouge", "matching.tokenizers", "plotting", "results", "rows", *_WORDS,
    },
}  # fmt: skip

#: Third-party package -> the modules (or packages of them) that may import it; numpy is for all.
MAY_USE: dict[str, set[str]] = {
    "matplotlib": {"plotting", "compat"},  # compat shows its figure, as krag did
    "langchain_core": {"documents", "retrievers", "compat"},
    "pandas": {
        "results", "disputes", "uncertainty", "comparison", "calibration", "explanation",
        "thresholds", "row_files", "plotting", "datasets", "cli", "compat", "retrieval",
        "retrievers", "distributed",
    },
    "pyarrow": {"datasets", "distributed", "row_files"},
    "cloudpickle": {"distributed"},
    "dask": {"distributed"},
    "pyspark": {"distributed"},
    "ray": {"distributed"},
    "tqdm": {"progress"},
    "scipy": {"uncertainty", "pairing"},
    "rouge_score": {"matching.rouge", "matching.tokenizers"},
    "nltk": {"matching.stemming", "compat"},
    "joblib": {"matching.parallel"},
    "kiwipiepy": {"matching.tokenizers", "compat"},
    "rapidfuzz": {"matching.rouge", "matching.fuzzy"},
    "click": {"cli"},
    "rich": {"cli"},
    "jinja2": {"report"},
    "markupsafe": {"report"},  # comes with jinja2
}  # fmt: skip

# Slow to load: never at the top of a module, unless the module is of no use without it.
LOADED_ON_USE = set(MAY_USE) - {"click"}
LOADED_AT_TOP = {  # their classes derive from LangChain's
    ("compat.document", "langchain_core"),
    ("retrievers.asking", "langchain_core"),
    ("retrievers.recorder", "langchain_core"),
    ("retrievers.wrapping", "langchain_core"),
}


class Import(NamedTuple):
    """One imported module, and how."""

    name: str
    for_typing: bool
    at_top: bool


def imports_of(tree: ast.Module, module: str, *, is_package: bool = False) -> list[Import]:
    """Return everything a module imports, by absolute name."""
    found = []

    def visit(node: ast.AST, for_typing: bool, at_top: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, for_typing, at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.extend(
                Import(name, for_typing, at_top) for name in from_import(node, module, is_package)
            )
        guarded = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, for_typing or guarded, at_top and not inside)

    visit(tree, for_typing=False, at_top=True)
    return found


def from_import(node: ast.ImportFrom, module: str, is_package: bool) -> list[str]:
    """Return the modules named by ``from x import a, b``: x, or x.a where that is a module."""
    base = node.module or ""
    if node.level:
        parts = ["krag_eval", *module.split(".")]
        parts = parts[: len(parts) - node.level + is_package]
        base = ".".join([*parts, *([base] if base else [])])
    names = []
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        if base == "krag_eval" and alias.name in krag_eval._HOMES:
            # A public name stands for the module it lives in.
            inner = f"krag_eval.{krag_eval._HOMES[alias.name]}"
        is_room = inner.removeprefix("krag_eval.") in MODULES
        names.append(inner if base.startswith("krag_eval") and is_room else base)
    return names


def module_names() -> dict[str, Path]:
    """Return every module of the package but its ``__init__``, by name within the package."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts:
            names[".".join(parts)] = path
    return names


MODULES = module_names()


def imported_by(module: str) -> list[Import]:
    """Return what a module of the package imports."""
    path = MODULES[module]
    tree = ast.parse(path.read_text("utf-8"))
    return imports_of(tree, module, is_package=path.name == "__init__.py")


def allowed(module: str) -> set[str]:
    """Return what a module may import of the package."""
    package = module.partition(".")[0]
    if package in PACKAGES:
        beside = {name for name in MODULES if name == package or name.startswith(f"{package}.")}
        return PACKAGES[package] | beside
    return MAY_IMPORT[module]


every_module = pytest.mark.parametrize("module", sorted(MODULES))


def test_every_module_is_placed():
    """A new room is a decision: say here what it may know."""
    placed = {name for name in MODULES if name in MAY_IMPORT or name.partition(".")[0] in PACKAGES}
    assert set(MODULES) - placed == set()


@every_module
def test_a_module_imports_only_what_it_may_know(module):
    """Of the package; the package itself is imported for its version alone."""
    inner = {
        name.removeprefix("krag_eval.")
        for name, *_ in imported_by(module)
        if name.startswith("krag_eval.")
    }
    assert inner - allowed(module) == set()


@every_module
def test_a_module_uses_only_the_packages_it_may(module):
    """For type checkers a heavy package may be named anywhere; loading it is another matter."""
    used = {name.partition(".")[0] for name, for_typing, _ in imported_by(module) if not for_typing}
    outer = used - set(sys.stdlib_module_names) - {"krag_eval", "numpy"}
    room = module.partition(".")[0]
    may = {package for package, users in MAY_USE.items() if users & {module, room}}
    assert outer - may == set()


@every_module
def test_slow_packages_load_when_they_are_used(module):
    """Not when the module does."""
    at_top = {
        name.partition(".")[0]
        for name, for_typing, top in imported_by(module)
        if top and not for_typing
    }
    meant = {package for room, package in LOADED_AT_TOP if room == module}
    assert at_top & LOADED_ON_USE == meant


def test_what_is_allowed_has_no_circles_but_those_that_are_meant():
    """Left never imports right: ordering the rooms must be possible.

    A comparison and a calibration can draw themselves, results and comparisons can write
    themselves as a page, a result can tell how sure and how good it is, and a matcher can be
    combined by an operator: each imports the other only when it does.
    """
    meant = {
        ("comparison", "plotting"),
        ("comparison", "report"),
        ("calibration", "plotting"),
        ("results", "uncertainty"),
        ("results", "gates"),
        ("results", "report"),
        ("matching.base", "matching.combined"),
    }
    left = {
        module: {other for other in others if (module, other) not in meant}
        for module, others in (MAY_IMPORT | PACKAGES).items()
    }
    ordered: list[str] = []
    while left:
        free = [module for module, others in left.items() if not others & set(left)]
        assert free, f"circle among {sorted(left)}"
        ordered += free
        left = {module: others for module, others in left.items() if module not in free}
    flow = ["documents", "matching.base", "relevance", "metrics", "results", "evaluator"]
    assert sorted(flow, key=ordered.index) == flow


MUST_NOT_KNOW = {
    "documents": {"matching", "relevance", "metrics", "averages", "results", "evaluator"},
    "conventions": {"documents", "matching", "relevance", "metrics", "results", "evaluator"},
    "matching": {"relevance", "metrics", "averages", "results", "cutoffs", "evaluator"},
    "relevance": {"documents", "metrics", "averages", "results", "evaluator"},
    "metrics": {"documents", "matching", "averages", "results", "evaluator"},
    "averages": {"documents", "matching", "metrics", "relevance", "results", "evaluator"},
    "results": {"documents", "matching", "relevance", "metrics", "plotting", "evaluator"},
    "plotting": {"documents", "matching", "relevance", "metrics", "evaluator"},
    "calibration": {"relevance", "metrics", "averages", "results", "evaluator"},
    "comparison": {"documents", "matching", "relevance", "metrics", "evaluator"},
    "datasets": {"matching", "metrics", "relevance", "averages", "results"},
    "compat": {"metrics", "relevance", "averages"},
    "integrations": {"relevance", "averages"},
    "cli": {"metrics", "relevance", "averages"},
}


@pytest.mark.parametrize("room", MUST_NOT_KNOW)
def test_the_tables_above_keep_the_promises_of_the_rooms(room):
    """What a room's first lines say it must not know cannot be allowed to it by mistake."""
    may = {other for module, others in (MAY_IMPORT | PACKAGES).items() for other in others
           if module == room or module.startswith(f"{room}.")}  # fmt: skip
    assert {other for other in may if other.partition(".")[0] in MUST_NOT_KNOW[room]} == set()


def test_matchers_do_not_know_each_other():
    """Only tokenizers, and what all of them are made of."""
    shared = {
        "matching", "matching.base", "matching.joins", "matching.numbering", "matching.parallel",
        "matching.models", "matching.plaintext", "matching.stemming", "matching.tokenizers",
        "matching.waiting",
    }  # fmt: skip
    for module, others in MAY_IMPORT.items():
        if module.startswith("matching.") and module not in ("matching.base", "matching.names"):
            assert {o for o in others if o.startswith("matching")} <= shared, module


SNIPPET = """
from __future__ import annotations
import numpy as np
from krag_eval import Conventions, __version__
from krag_eval.documents import AnyOf
from krag_eval.matching import exact
from . import joins
from .base import Matcher
from ..metrics import METRICS
if TYPE_CHECKING:
    import pandas as pd
def later():
    import matplotlib.pyplot as plt
class Room:
    from rich.table import Table
    def inside(self):
        from scipy import stats
"""


def test_imports_are_found_wherever_they_stand():
    """Relative, inside functions and classes, for type checkers, and by a public name."""
    found = imports_of(ast.parse(SNIPPET), "matching.rouge")
    assert found == [
        Import("__future__", False, True),
        Import("numpy", False, True),
        Import("krag_eval.conventions", False, True),
        Import("krag_eval", False, True),
        Import("krag_eval.documents", False, True),
        Import("krag_eval.matching.exact", False, True),
        Import("krag_eval.matching.joins", False, True),
        Import("krag_eval.matching.base", False, True),
        Import("krag_eval.scoring.metrics", False, True),
        Import("pandas", True, True),
        Import("matplotlib.pyplot", False, False),
        Import("rich.table", False, True),
        Import("scipy", False, False),
    ]


def test_relative_imports_of_a_package_start_from_itself():
    """In ``__init__`` one dot is the package, not its parent."""
    (found,) = imports_of(ast.parse("from .base import Matcher"), "matching", is_package=True)
    assert found.name == "krag_eval.matching.base"
