"""Importing compat is light, and its modules have the same paths as krag's."""

import pytest
from processes import printed

import krag_eval.compat

_HEAVY = (
    "matplotlib",
    "pandas",
    "nltk",
    "rouge_score",
    "kiwipiepy",
    "langchain",
    "langchain_openai",
    "langchain_huggingface",
    "langchain_ollama",
)


def _loaded_by(statement: str, names: tuple[str, ...]) -> list[str]:
    """Return which of the packages a statement loads in a fresh process."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {names!r} if name in sys.modules))"
    return printed(code).split()


def test_importing_compat_loads_nothing() -> None:
    """Not even numpy or LangChain."""
    assert _loaded_by("import krag_eval.compat", (*_HEAVY, "numpy", "langchain_core")) == []


@pytest.mark.parametrize("module", ["evaluators", "utils", "document"])
def test_importing_a_module_loads_nothing_heavy(module: str) -> None:
    """Plots, frames, stemmers, Kiwi and embedding providers wait until they are used."""
    assert _loaded_by(f"import krag_eval.compat.{module}", _HEAVY) == []


def test_only_the_document_needs_langchain() -> None:
    """The evaluators take documents of any kind."""
    assert _loaded_by("import krag_eval.compat.evaluators", ("langchain_core",)) == []


def test_modules_are_attributes() -> None:
    """They load on first use."""
    assert krag_eval.compat.evaluators.AveragingMethod.BOTH.value == "both"
    assert dir(krag_eval.compat) == ["document", "evaluators", "utils"]


def test_there_is_nothing_else() -> None:
    """The error is Python's usual one."""
    with pytest.raises(AttributeError, match=r"module 'krag_eval\.compat' has no attribute 'eval'"):
        _ = krag_eval.compat.eval
