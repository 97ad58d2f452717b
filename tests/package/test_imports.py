"""Importing: what loads when, and that every public name is where it says it is."""

import ast
from importlib import import_module
from pathlib import Path

import pytest
from processes import loaded_by, printed

import krag_eval

HEAVY = ("matplotlib", "pandas", "langchain_core", "rouge_score", "nltk", "scipy", "rapidfuzz")

PLAIN_STRINGS = """
from krag_eval import OfflineRetrievalEvaluator
evaluator = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x"]])
evaluator.calculate_recall(k=1)
evaluator.evaluate(k=[1, 2]).to_dict()
"""
HELP = """
import sys
sys.argv = ["krag-eval", "--help"]
from krag_eval.__main__ import main
try:
    main()
except SystemExit:
    sys.stdout.write("\\n")
"""


@pytest.mark.parametrize(
    ("code", "needed", "not_needed"),
    [
        ("import krag_eval", "krag_eval", {*HEAVY, "numpy"}),
        # The list of commands is there before numpy would be.
        (HELP, "click", {*HEAVY, "numpy", "rich", "pyarrow", "jinja2"}),
        # Who brings no LangChain document and asks for no table does not wait for either.
        (PLAIN_STRINGS, "numpy", HEAVY),
        # A matcher that compares exactly does not load ROUGE.
        (
            "from krag_eval.core.matching.names import resolve_matcher; resolve_matcher('id')",
            "numpy",
            HEAVY,
        ),
        # What is heavy loads when asked for, so the above does look at what it says.
        (PLAIN_STRINGS + "evaluator.evaluate(k=1).metrics", "pandas", ()),
        ("from langchain_core.documents import Document", "langchain_core", ()),
    ],
)
def test_only_what_is_needed_loads(code, needed, not_needed):
    """In a fresh process."""
    loaded = loaded_by(code)
    assert needed in loaded
    assert not loaded & {*not_needed}


def stubbed():
    """Return the modules and the names that the stub lists, with the home of each name."""
    listed = ast.parse(Path(krag_eval.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in listed.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    return {alias.name: node.module for node in imports for alias in node.names}


@pytest.mark.parametrize(("name", "home"), stubbed().items())
def test_every_public_name_resolves(name, home):
    """From the top, to the object of that name in its home."""
    value = getattr(krag_eval, name)
    if home is None:
        assert value is import_module(f"krag_eval.{name}")
    else:
        assert value is getattr(import_module(f"krag_eval.{home}"), name)


def test_the_public_names_are_those_of_the_stub():
    """And the version, each once; completion and a star import know what was not loaded yet."""
    names = {}
    exec("from krag_eval import *", names)  # the only place a star import can be written here
    assert sorted(krag_eval.__all__) == sorted([*stubbed(), "__version__"])
    assert {*krag_eval.__all__} - {"__version__"} <= {*dir(krag_eval)}
    assert set(krag_eval.__all__) <= set(names)
    assert krag_eval.Conventions is vars(krag_eval)["Conventions"]  # the second look is a dict's
    assert all(map(str.isdigit, krag_eval.__version__.split(".")[:2]))


@pytest.mark.parametrize("room", ["compat", "datasets", "errors", "plotting", "report"])
def test_modules_that_users_name_are_found(room):
    """Without a line that imports them, in a process that has imported nothing else."""
    said = f"import krag_eval; assert {room!r} in dir(krag_eval); print(krag_eval.{room}.__name__)"
    assert printed(said).strip() == f"krag_eval.{room}"


@pytest.mark.parametrize(
    "module",
    ["compat", "datasets", "distributed", "errors", "integrations", "matching", "partitions",
     "plotting", "report"],
)  # fmt: skip
def test_modules_of_the_first_version_are_importable(module):
    """With all that they name, wherever the code of it stands by now."""
    found = import_module(f"krag_eval.{module}")
    assert [name for name in getattr(found, "__all__", ()) if not hasattr(found, name)] == []


def test_errors_are_shown_by_their_public_address():
    """As tracebacks print them, and pickles find them."""
    from krag_eval import errors

    assert {getattr(errors, name).__module__ for name in errors.__all__} == {"krag_eval.errors"}


def test_an_unknown_name_is_an_attribute_error():
    """As for any module."""
    with pytest.raises(AttributeError, match=r"krag_eval.* attribute.*Evaluator"):
        krag_eval.Evaluator  # noqa: B018  (looking it up is the test)


def test_an_unknown_name_cannot_be_imported():
    """As from any module."""
    with pytest.raises(ImportError, match="cannot import name 'Evaluator' from 'krag_eval'"):
        from krag_eval import Evaluator  # noqa: F401  (importing it is the test)


def test_type_information_ships_with_the_package():
    """The marker that type checkers look for."""
    assert (Path(krag_eval.__file__).parent / "py.typed").is_file()
