"""Translations: the catalogs fit the code, and another language is one file."""

import ast
import io
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages import Catalog
from babel.messages.mofile import write_mo
from click.testing import CliRunner

import krag_eval
from krag_eval import OfflineRetrievalEvaluator
from krag_eval.cli import main
from krag_eval.core import language as _language
from krag_eval.plotting import metric_bars

ROOT = Path(krag_eval.__file__).parents[1]
ROWS = [["a", "b"], ["c"]], [["a", "x"], ["y"]]
#: English and German: of a table, a page, a picture and help.
GERMAN = {
    "metric": "Kennzahl",
    "signature: ": "Signatur: ",
    "Recall": "Trefferquote",
    "Precision": "Genauigkeit",
    "Macro (mean)": "Mittel je Frage",
    "Micro (pooled)": "Mittel über alles",
    "at k = {}": "bei k = {}",
    "Show this message and exit.": "Diese Hilfe zeigen.",
    "Measure how good retrieval is in a RAG system.": "Misst, wie gut ein RAG-System sucht.",
}


def test_the_catalogs_fit_the_code() -> None:
    """Nothing is stale, untranslated, or fills in other things than the English."""
    checked = subprocess.run(
        [sys.executable, ROOT / "tests" / "catalog.py", "check"], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_no_text_is_marked_within_an_f_string() -> None:
    """Where no extractor of texts looks, so that it would stay English."""
    strings = [
        string
        for file in Path(krag_eval.__file__).parent.rglob("*.py")
        for string in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(string, ast.JoinedStr)
    ]
    calls = [one for string in strings for one in ast.walk(string) if isinstance(one, ast.Call)]
    marked = [one for one in calls if ast.unparse(one.func) in ("_", "N_", "ngettext", "pgettext")]
    assert strings
    assert [one for one in marked if isinstance(one.args[0], ast.Constant)] == []


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring a catalog of a language that the package does not know, and speak it."""
    catalog = Catalog("de")
    for english, told in GERMAN.items():
        catalog.add(english, told)
    catalog.add(("{} query", "{} queries"), ("{} Frage", "{} Fragen"))
    compiled = io.BytesIO()
    write_mo(compiled, catalog)
    file = tmp_path / "de" / "LC_MESSAGES" / "krag_eval.mo"
    file.parent.mkdir(parents=True)
    file.write_bytes(compiled.getvalue())
    monkeypatch.setattr(_language, "LOCALE", tmp_path)
    monkeypatch.setenv("KRAG_EVAL_LANG", "de")


@pytest.mark.usefixtures("german")
@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_a_language_is_one_file(tmp_path: Path) -> None:
    """In the shell, on the page and in a picture; what it lacks is told in English."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"actual": ["a"], "predicted": ["a"]}\n' * 2, "utf-8")
    shell = CliRunner().invoke(main, ["evaluate", str(rows), "-k", "1"]).output
    assert "Kennzahl" in shell
    assert "Signatur: " in shell
    assert "2 queries from" in shell
    assert "Misst, wie gut" in CliRunner().invoke(main, ["--help"]).output

    result = OfflineRetrievalEvaluator(*ROWS).evaluate(1)
    page = tmp_path / "page.html"
    result.report(page)
    text = page.read_text("utf-8")
    assert '<html lang="de"' in text
    assert "Trefferquote" in text
    assert "How to read this page" in text

    ax = metric_bars(result)
    legend = ax.get_legend()
    assert legend is not None
    assert [one.get_text() for one in legend.get_texts()] == [
        "Mittel über alles",
        "Mittel je Frage",
    ]
    assert ax.get_title("left") == "Retrieval metrics bei k = 1 (2 Fragen)"
    assert {"Trefferquote", "MRR"} <= {one.get_text() for one in ax.get_yticklabels()}
