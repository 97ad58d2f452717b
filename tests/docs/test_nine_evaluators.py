"""The pages that show what other evaluators print show what was measured."""

import importlib
import json
import math

import pytest
from places import DOCS

NINE = (
    "pytrec-eval-terrier", "ranx", "haystack-ai", "llama-index-core", "continuous-eval",
    "trulens-feedback", "AutoRAG", "mlflow", "krag",
)  # fmt: skip


@pytest.fixture
def script(monkeypatch):
    """Return the script that measured."""
    monkeypatch.syspath_prepend(str(DOCS / "measured"))
    return importlib.import_module("nine_evaluators")


@pytest.fixture
def measured():
    """Return what every evaluator printed."""
    return json.loads((DOCS / "measured/nine_evaluators.json").read_text("utf-8"))["measured"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_traps_show_what_was_measured(script, language):
    """All tables of the page, in order, and which versions were asked."""
    folder = DOCS / "ko" if language == "ko" else DOCS
    page = (folder / "why-your-rag-metric-is-wrong.md").read_text("utf-8")
    places = [page.find(f"\n\n{script.markdown(trap, language)}\n\n") for trap in script.TRAPS]
    assert len(places) == 8
    assert -1 not in places
    assert places == sorted(places)
    assert f"\n{script.versions()}.\n" in page


def test_every_evaluator_was_asked_every_case(script, measured):
    """So "none" in a table always means that there is no such metric."""
    assert measured.keys() == script.EVALUATORS.keys()
    for name in NINE:
        assert list(measured[name]) == list(script.CASES), name


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_krag_eval_prints_what_is_kept(script, measured):
    """Measured anew: the other tools have a version, this one is the one at hand."""
    ours = [name for name in script.EVALUATORS if name.startswith("krag-eval")]
    assert {name: script.measure(name) for name in ours} == {name: measured[name] for name in ours}


def test_right_numbers_are_those_derived_on_the_page(measured):
    """By hand, from the lists alone; the second and third discounts are 1/log2(3) and 1/2."""
    ours, coverage = measured["krag-eval"], measured["krag-eval, coverage"]
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    right = {
        ("one, three times", "ap"): 1.0,  # (1/1) / 1
        ("one, three times", "ndcg"): 1.0,  # 1 / 1
        ("one of three", "ndcg"): 1 / ideal,
        ("one of three", "ap"): 1 / 3,  # (1/1) / 3
        ("one of three", "recall"): 1 / 3,
        ("four retrieved, @10", "precision"): 2 / 4,
        ("nothing found", "recall"): (1 + 0) / 2,
        ("distances", "ndcg"): 1.0,  # A is first
    }
    assert {of: ours[of[0]][of[1]] for of in right} == pytest.approx(right, abs=1e-6)
    assert coverage["a passage in a chunk"]["recall"] == 1.0  # 7 of 7 words in one run
    assert (coverage["three chunks"]["recall"], coverage["three chunks"]["ndcg"]) == (1.0, 1.0)
    assert ours["nothing wanted"]["recall"].startswith("refused")


def test_wrong_numbers_come_about_as_the_page_says(measured):
    """Each from the formula that the page gives for it."""
    second, third, fourth, fifth = (1 / math.log2(rank + 1) for rank in (2, 3, 4, 5))
    three, five = 1 + second + third, 1 + second + third + fourth + fifth
    wrong = {
        ("krag", "one, three times", "ap"): (1 / 1 + 2 / 2 + 3 / 3) / 1,
        ("krag", "one, three times", "ndcg"): three / 1,
        ("mlflow", "one of three", "ndcg"): 1 / 1,  # the ideal is cut to what came back
        ("haystack-ai", "one of three", "recall"): 1.0,  # something was found
        ("ranx", "four retrieved, @10", "precision"): 2 / 10,
        ("AutoRAG", "nothing found", "recall"): 1 / 1,  # of the first question alone
        ("ranx", "distances", "ndcg"): second / 1,
        ("krag", "three chunks", "ndcg"): three / five,
    }
    printed = {of: measured[of[0]][of[1]][of[2]] for of in wrong}
    assert printed == pytest.approx(wrong, abs=1e-6)


@pytest.mark.parametrize("page", ["conventions.md", "ko/conventions.md"])
def test_disagreements_are_those_measured(measured, page):
    """The table of nDCG and AP, list A and list A A A; 0.469 stands for 0.469279."""
    text = (DOCS / page).read_text("utf-8").replace("**", "")
    for name in NINE:
        shown = (measured[name][case] for case in ("one of three", "one of three, three times"))
        cells = [case.get(of) for case in shown for of in ("ndcg", "ap")]
        assert " | " + " | ".join(as_on_the_page(cell, page) for cell in cells) + " |\n" in text, (
            name
        )


def as_on_the_page(cell, page):
    if cell is None:
        return "없음" if page.startswith("ko") else "none"
    if isinstance(cell, str):
        return "–"
    return "1.0" if cell == 1 else f"{cell:.3f}"
