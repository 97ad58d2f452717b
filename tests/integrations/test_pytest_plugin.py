"""The pytest plugin, in runs of pytest of their own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from krag_eval import OfflineRetrievalEvaluator, evaluate_file
from krag_eval.integrations.pytest import KragGate

pytest_plugins = ("pytester",)

PLUGIN = "krag_eval.integrations.pytest"
ROOT = Path(__file__).parents[2]
# Of two questions, the first loses one of two documents and the second everything: the macro
# recall is (1/2 + 0) / 2 = 0.25. The first relevant document is at ranks 1 and never: MRR 0.5.
SAMPLE = """
from krag_eval import OfflineRetrievalEvaluator

evaluator = OfflineRetrievalEvaluator(
    [["a", "b"], ["c"]], [["a", "x"], ["y"]], queries=["When?", "Where?"]
)
result = evaluator.evaluate(2)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs tests on the sample, with this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def ran(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(SAMPLE + tests)
        return pytester.runpytest_subprocess("-p", PLUGIN, *options)

    return ran


def test_a_result_that_is_good_enough(run) -> None:
    """The test passes, and the summary has a line for each condition."""
    found = run("""
def test_retrieval(krag_gate):
    report = krag_gate(result, {"recall@2": 0.25, "mrr@2": 0.5})
    assert [gate.metric for gate in report.gates] == ["macro_recall@2", "mrr@2"]
""")
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines([
        "*= retrieval gates =*",
        "passed: *macro_recall@2 is 0.2500*test_retrieval]",
        "passed: *mrr@2 is 0.5000*test_retrieval]",
    ])  # fmt: skip


def test_a_language_that_there_is_not(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate says so in a line, and the summary, in English, what was checked."""
    monkeypatch.setenv("KRAG_EVAL_LANG", "xx")
    found = run("""
rows = [["a"]] * 40
result = OfflineRetrievalEvaluator(rows, [["a", "b"]] * 40, queries=[*range(40)]).evaluate(2)

def test_mistaken(krag_gate):
    krag_gate(result, {"mrr@2": 1.0})

def test_without_a_baseline(krag_gate):
    krag_gate(result, baseline="none.json", metric="mrr@2")

def test_mended(krag_gate, monkeypatch):
    monkeypatch.delenv("KRAG_EVAL_LANG")
    krag_gate(result, {"mrr@2": 1.0})
""")
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(["KRAG_EVAL_LANG must be*", "no baseline: *", "passed: *mrr@2*"])
    found.stdout.no_fnmatch_line("*Traceback*")
    found.stdout.no_fnmatch_line("*raise *")
    assert "Traceback" not in found.stderr.str()


def test_a_result_in_korean(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As KRAG_EVAL_LANG says: 0.25 of recall, and both queries lost something."""
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    found = run("""
def test_retrieval(krag_gate):
    krag_gate(result, {"recall@2": 0.5})
""")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines([
        "검색 품질이 기준에 못 미칩니다: macro_recall@2",
        "  실패: macro_recall@2 = 0.2500, 하한선 0.5보다 낮습니다",
        "macro_recall@2의 95% 신뢰구간: *(질문 2개)",
        "정답을 다 찾지 못한 질문 2개 중 가장 많이 놓친 질문(@2):",
        "  'Where?': 정답 1개 중 0개 찾음",
        "*= 검색 품질 게이트 =*",
        "실패: macro_recall@2 *test_retrieval]",
    ])  # fmt: skip


def test_a_result_that_falls_short(run) -> None:
    """The failure has metric, value, floor, interval and worst queries, and no traceback."""
    found = run("""
def test_retrieval(krag_gate):
    krag_gate(result, ["recall@2=0.8", "mrr@2=0.5"])
    raise RuntimeError("not reached")
""")
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines([
        "*failed: *macro_recall@2 is 0.2500*0.8*",
        "*passed: *mrr@2*",
        # Of two queries, every average of resamples is between the values of the two.
        "*interval of macro_recall@2: 0.0000 to 0.5000 (2 queries)",
        "*worst queries @2, of 2 *",
        "*'Where?': found 0 of 1",
        "*'When?': found 1 of 2",
        "*= retrieval gates =*",
        "failed: *test_retrieval]",
    ])  # fmt: skip
    found.stdout.no_fnmatch_line("*Error*")


def test_a_baseline_and_its_file(run, pytester: pytest.Pytester) -> None:
    """Both are compared with the result; against itself nothing drops."""
    found = run("""
def test_retrieval(krag_gate, tmp_path):
    result.to_json(tmp_path / "old.json")
    for baseline in (result, tmp_path / "old.json", str(tmp_path / "old.json")):
        assert krag_gate(result, baseline=baseline, metric="ndcg@2", max_drop=0.1)
""")
    found.assert_outcomes(passed=1)
    assert found.stdout.str().count("passed: ndcg@2 went from") == 3


def test_a_baseline_that_is_not_there(run, pytester: pytest.Pytester) -> None:
    """Or cannot be read: the test fails with how to make one, and without a traceback."""
    pytester.path.joinpath("damaged.json").write_text("{", "utf-8")
    found = run("""
def test_missing(krag_gate):
    krag_gate(result, baseline="base line.json", metric="ndcg@2")

def test_damaged(krag_gate):
    krag_gate(result, baseline="damaged.json", metric="ndcg@2")
""")
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines([
        "no baseline: base line.json: *",
        "*result.to_json('base line.json')",
        "*krag-eval evaluate * --json 'base line.json'",
        "no baseline: damaged.json: *",
    ])  # fmt: skip
    found.stdout.no_fnmatch_line("*Error*")


# Of 40 questions the results find all, or those from a number on.
MANY = """
from pathlib import Path
from krag_eval import EvaluationResult, History

actual = [[f"p {i}"] for i in range(40)]
def finds(first, last=40):
    lists = [truth if first <= i < last else ["?"] for i, truth in enumerate(actual)]
    return OfflineRetrievalEvaluator(actual, lists).evaluate(1)

"""


@pytest.mark.filterwarnings("ignore")
def test_an_undefined_average_has_no_interval() -> None:
    """Nothing was found: it is told that, and no bounds that are none."""
    result = OfflineRetrievalEvaluator([["a"]] * 40, [["x"]] * 40).evaluate(5)
    with pytest.raises(pytest.fail.Exception) as caught:
        KragGate(lambda line: None)(result, {"mean_rank@5": 2, "mrr@5": 0.5})
    assert "interval of mrr@5" in str(caught.value)
    assert "nan" not in str(caught.value)


def test_a_history(run, pytester: pytest.Pytester) -> None:
    """The mean of three runs is 0.75; where there is none, it is told."""
    found = run(
        MANY
        + """
def test_retrieval(krag_gate, tmp_path):
    for n in (0, 10, 20):
        finds(n).to_json(tmp_path / f"{n}.json")
    report = krag_gate(finds(10), history=tmp_path, metric="recall@1")
    assert len(report.held_against["macro_recall@1"]) == 3
    assert krag_gate(finds(10), history=History.of(tmp_path), metric="recall@1", last=3)
    krag_gate(finds(30), history=str(tmp_path), metric="recall@1", save="new.json")


def test_what_was_saved():
    assert EvaluationResult.from_json("new.json").gate == "failed"


def test_missing(krag_gate):
    krag_gate(result, history="none", metric="mrr@2")


def test_empty(krag_gate, tmp_path):
    krag_gate(result, history=tmp_path, metric="mrr@2")
""",
        "-W",
        "ignore",
    )
    found.assert_outcomes(failed=3, passed=1)
    found.stdout.fnmatch_lines([
        "*failed: *went from 0.7500 to 0.2500*0 is allowed*",
        "*no baseline: *none*",
        "*result.to_json('none?first.json')",
        "*folder*no saved result*",
        "passed: *went from 0.7500 to 0.7500*",
    ])  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_what_is_inconclusive_is_a_warning(run, options) -> None:
    """The test passes, also where warnings are errors, and fails if the gate is strict."""
    found = run(
        MANY
        + """
def test_retrieval(krag_gate):
    assert krag_gate(finds(1), {"mrr@1": 0.1}, baseline=finds(0), metric="recall@1")

def test_strict(krag_gate):
    krag_gate(finds(1), baseline=finds(0), metric="recall@1", strict=True)
""",
        *options,
    )
    found.assert_outcomes(passed=1, failed=1, warnings=1)
    found.stdout.fnmatch_lines([
        "*warnings summary*",
        "*KragEvalWarning: inconclusive gate: macro_recall@1 went from 1.0000 to 0.9750*",
        "*retrieval gates*",
        "inconclusive: *worse by 0.0250*test_retrieval*",
        "passed: mrr@1*",
    ])  # fmt: skip


def test_each_gate_is_told_once_whatever_became_of_the_test(run) -> None:
    """Tests that are expected to fail, fail later, or are torn down badly, too."""
    found = run("""
import pytest

@pytest.fixture
def untidy():
    yield
    raise OSError

@pytest.mark.xfail
def test_expected(krag_gate):
    krag_gate(result, {"recall@2": 0.9})

def test_later(krag_gate):
    krag_gate(result, {"recall@2": 0.1})
    assert False

def test_untidy(untidy, krag_gate):
    krag_gate(result, {"recall@2": 0.2})
""")
    found.assert_outcomes(xfailed=1, failed=1, passed=1, errors=1)
    told = found.stdout.str().partition("retrieval gates")[2]
    for test in ("test_expected", "test_later", "test_untidy"):
        assert told.count(f"::{test}]") == 1


def test_no_gate_no_section(run) -> None:
    """A suite that does not use it sees nothing of it."""
    found = run("def test_nothing(): pass")
    found.assert_outcomes(passed=1)
    found.stdout.no_fnmatch_line("*retrieval gates*")


def test_warnings_as_errors_do_not_hide_a_failure(run) -> None:
    """Intervals of few queries come with a warning, which is not what failed."""
    found = run("""
def test_retrieval(krag_gate):
    krag_gate(result, {"recall@2": 0.8})
""", "-W", "error")  # fmt: skip
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["*interval of macro_recall@2*"])


def test_without_rows_the_conditions_are_told(tmp_path: Path) -> None:
    """A run in parts may keep sums alone; there is no interval then, and no worst query."""
    file = tmp_path / "run.jsonl"
    file.write_text('{"question": "When?", "actual": ["a", "b"], "predicted": ["a", "x"]}\n')
    result = evaluate_file(file, 2)
    lines: list[str] = []
    with pytest.raises(pytest.fail.Exception) as info:
        KragGate(lines.append)(result, {"recall@2": 0.8})
    assert len(lines) == 1
    assert lines[0].startswith("failed")
    assert "interval" not in str(info.value)


def test_what_is_refused() -> None:
    """What is no result, and what ``check`` refuses; nothing is recorded of it."""
    lines: list[str] = []
    gate = KragGate(lines.append)
    with pytest.raises(pytest.fail.Exception) as info:
        gate({"recall@5": 0.9}, {"recall@5": 0.8})  # type: ignore[arg-type]
    assert "result" in str(info.value)
    result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
    refused: list[dict[str, Any]] = [
        {"floors": {"recall@1": 80}},
        {},
        {"recall": 0.8},
        {"baseline": "nowhere.json", "metric": "recall@1"},
        {"baseline": result, "history": "runs", "metric": "recall@1"},
        {"history": "runs", "metric": "recall@1", "treshold": 1},
        {"baseline": result, "last": 3, "metric": "recall@1"},
    ]
    for asked in refused:
        with pytest.raises(pytest.fail.Exception) as info:
            gate(result, **asked)
        assert (info.value.pytrace, info.value.__context__) == (False, None)
    assert lines == []


def test_pytest_finds_it_by_itself() -> None:
    """The entry point names this module."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"krag_eval": PLUGIN}


def test_it_loads_with_every_run_and_weighs_nothing() -> None:
    """Beside pytest itself, it loads none of the packages that evaluate."""
    code = f"""
import sys, pytest
before = set(sys.modules)
import {PLUGIN}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(new - sys.stdlib_module_names))
"""
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["krag_eval", "lazy_loader"]
