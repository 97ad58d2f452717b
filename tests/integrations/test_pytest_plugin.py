"""The pytest plugin, in runs of pytest of their own."""

import tomllib
import warnings

import pytest
from places import ROOT
from processes import printed
from systems import first

from krag_eval import EvaluationResult, History, OfflineRetrievalEvaluator, evaluate_file
from krag_eval.integrations.pytest import KragGate

pytest_plugins = ("pytester",)

PLUGIN = "krag_eval.integrations.pytest"
RESULT = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(1)
# Of two questions, the first loses one of two documents and the second everything: the macro
# recall is (1/2 + 0) / 2 = 0.25. The first relevant document is at ranks 1 and never: MRR 0.5.
SAMPLE = """
from pathlib import Path

import pytest
from krag_eval import EvaluationResult, History, OfflineRetrievalEvaluator

evaluator = OfflineRetrievalEvaluator(
    [["a", "b"], ["c"]], [["a", "x"], ["y"]], queries=["When?", "Where?"]
)
result = evaluator.evaluate(2)

# Of 40 questions the results find all, or those from a number on.
def finds(first):
    actual = [[f"p {i}"] for i in range(40)]
    lists = [truth if i >= first else ["?"] for i, truth in enumerate(actual)]
    return OfflineRetrievalEvaluator(actual, lists).evaluate(1)
"""


@pytest.fixture(scope="module")
def _loaded(tmp_path_factory):
    """Load what gates load, as a run within this process can load no numpy of its own."""
    folder = tmp_path_factory.mktemp("loaded")
    with warnings.catch_warnings(action="ignore"):
        result = OfflineRetrievalEvaluator([["a"]], [["b"]]).evaluate(1)
        result.to_json(folder / "a.json")
        result.check(baseline=RESULT, metric="mrr@1")
        result.confidence_intervals()
        result.misses(1)
        repr(History.of(folder).check(RESULT, metric="mrr@1"))


@pytest.fixture
def run(_loaded, pytester, monkeypatch):
    """Return a function that runs tests on the sample, with this plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("KRAG_EVAL_LANG", raising=False)

    def ran(tests, *options, **outcomes):
        pytester.makepyfile(SAMPLE + tests)
        found = pytester.runpytest_inprocess("-p", PLUGIN, *options)
        found.assert_outcomes(**outcomes)
        return found

    return ran


def test_a_result_that_is_good_enough(run):
    """The test passes, and the summary has a line for each condition."""
    tests = """
def test_retrieval(krag_gate):
    report = krag_gate(result, {"recall@2": 0.25, "mrr@2": 0.5})
    assert [gate.metric for gate in report.gates] == ["macro_recall@2", "mrr@2"]
"""
    run(tests, passed=1).stdout.fnmatch_lines([
        "*= retrieval gates =*",
        "passed: *macro_recall@2 is 0.2500*test_retrieval]",
        "passed: *mrr@2 is 0.5000*test_retrieval]",
    ])  # fmt: skip


def test_a_language_that_there_is_not(run, monkeypatch):
    """The gate says so in a line, and the summary, in English, what was checked."""
    monkeypatch.setenv("KRAG_EVAL_LANG", "xx")
    tests = """
def test_mistaken(krag_gate):
    krag_gate(finds(0), {"mrr@1": 1.0})

def test_without_a_baseline(krag_gate):
    krag_gate(finds(0), baseline="none.json", metric="mrr@1")

def test_mended(krag_gate, monkeypatch):
    monkeypatch.delenv("KRAG_EVAL_LANG")
    krag_gate(finds(0), {"mrr@1": 1.0})
"""
    found = run(tests, "-W", "ignore", passed=1, failed=2)
    found.stdout.fnmatch_lines(["KRAG_EVAL_LANG must be*", "no baseline: *", "passed: *mrr@1*"])
    for line in ("*Traceback*", "*raise *"):
        found.stdout.no_fnmatch_line(line)
    assert "Traceback" not in found.stderr.str()


def test_a_result_in_korean(run, monkeypatch):
    """As KRAG_EVAL_LANG says: 0.25 of recall, and both queries lost something."""
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko")
    tests = 'def test_retrieval(krag_gate): krag_gate(result, {"recall@2": 0.5})'
    run(tests, failed=1).stdout.fnmatch_lines([
        "검색 품질이 기준에 못 미칩니다: macro_recall@2",
        "  실패: macro_recall@2 = 0.2500, 하한선 0.5보다 낮습니다",
        "macro_recall@2의 95% 신뢰구간: *(질문 2개)",
        "정답을 다 찾지 못한 질문 2개 중 가장 많이 놓친 질문(@2):",
        "  'Where?': 정답 1개 중 0개 찾음",
        "*= 검색 품질 게이트 =*",
        "실패: macro_recall@2 *test_retrieval]",
    ])  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_a_result_that_falls_short(run, options):
    """With metric, value, floor, interval and worst queries, and no traceback.

    Intervals of few queries come with a warning, which is not what failed.
    """
    tests = """
def test_retrieval(krag_gate):
    krag_gate(result, ["recall@2=0.8", "mrr@2=0.5"])
    raise RuntimeError("not reached")
"""
    found = run(tests, *options, failed=1)
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


def test_a_baseline_and_its_file(run):
    """Both are compared with the result; where there is none, it is told how to make one."""
    tests = """
def test_retrieval(krag_gate, tmp_path):
    old = evaluator.evaluate(2)
    old.to_json(tmp_path / "old.json")
    for baseline in (old, tmp_path / "old.json", str(tmp_path / "old.json")):
        assert krag_gate(result, baseline=baseline, metric="ndcg@2", max_drop=0.1)

def test_missing(krag_gate):
    krag_gate(result, baseline="base line.json", metric="ndcg@2")

def test_damaged(krag_gate):
    with open("damaged.json", "w") as file:
        file.write("{")
    krag_gate(result, baseline="damaged.json", metric="ndcg@2")
"""
    found = run(tests, "-W", "ignore", passed=1, failed=2)
    assert found.stdout.str().count("passed: ndcg@2 went from") == 3
    found.stdout.fnmatch_lines([
        "no baseline: base line.json: *",
        "*result.to_json('base line.json')",
        "*krag-eval evaluate * --json 'base line.json'",
        "no baseline: damaged.json: *",
    ])  # fmt: skip
    found.stdout.no_fnmatch_line("*Error*")


def test_a_history(run):
    """The mean of three runs is 0.75; where there is none, it is told."""
    tests = """
def test_retrieval(krag_gate, tmp_path):
    for n in (0, 10, 20):
        finds(n).to_json(tmp_path / f"{n}.json")
    report = krag_gate(finds(10), history=tmp_path, metric="recall@1")
    assert len(report.held_against["macro_recall@1"]) == 3
    assert krag_gate(finds(10), history=History.of(tmp_path), metric="recall@1", last=3)
    krag_gate(finds(9), history=str(tmp_path), metric="recall@1", save="new.json")
    krag_gate(finds(30), history=str(tmp_path), metric="recall@1", save="bad.json")

def test_what_was_saved():
    assert EvaluationResult.from_json("new.json").gate == "passed"
    assert not Path("bad.json").exists()

def test_missing(krag_gate):
    krag_gate(result, history="none", metric="mrr@2")

def test_empty(krag_gate, tmp_path):
    krag_gate(result, history=tmp_path, metric="mrr@2")
"""
    run(tests, "-W", "ignore", failed=3, passed=1).stdout.fnmatch_lines([
        "*failed: *went from 0.7500 to 0.2500*0 is allowed*",
        "*no baseline: *none*",
        "*result.to_json('none?first.json')",
        "*folder*no saved result*",
        "passed: *went from 0.7500 to 0.7500*",
    ])  # fmt: skip


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_what_is_inconclusive_is_a_warning(run, options):
    """The test passes, also where warnings are errors, and fails if the gate is strict."""
    tests = """
def test_retrieval(krag_gate):
    assert krag_gate(finds(1), {"mrr@1": 0.1}, baseline=finds(0), metric="recall@1")

def test_strict(krag_gate):
    krag_gate(finds(1), baseline=finds(0), metric="recall@1", strict=True)
"""
    run(tests, *options, passed=1, failed=1, warnings=1).stdout.fnmatch_lines([
        "*warnings summary*",
        "*KragEvalWarning: inconclusive gate: macro_recall@1 went from 1.0000 to 0.9750*",
        "*retrieval gates*",
        "inconclusive: *worse by 0.0250*test_retrieval*",
        "passed: mrr@1*",
    ])  # fmt: skip


def test_each_gate_is_told_once_whatever_became_of_the_test(run):
    """Tests that are expected to fail, fail later, or are torn down badly, too."""
    tests = """
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
"""
    found = run(tests, xfailed=1, failed=1, passed=1, errors=1)
    told = found.stdout.str().partition("retrieval gates")[2]
    for test in ("test_expected", "test_later", "test_untidy"):
        assert told.count(f"::{test}]") == 1


def test_no_gate_no_section(run):
    """A suite that does not use it sees nothing of it."""
    run("def test_nothing(): pass", passed=1).stdout.no_fnmatch_line("*retrieval gates*")


def failure_of(result, *asked, record=print, **how):
    """Return the failure with which a gate ends a test."""
    with pytest.raises(pytest.fail.Exception) as caught:
        KragGate(record)(result, *asked, **how)
    return caught.value


@pytest.fixture
def saved(tmp_path):
    """Save a baseline that found all of 40, and return its result and file."""
    result = first(40)
    result.to_json(tmp_path / "b.json")
    return result, tmp_path / "b.json"


@pytest.mark.parametrize("n", [40, 10])
@pytest.mark.parametrize("how", ["file", "spelling", "link", "object"])
def test_a_gate_does_not_replace_its_baseline(saved, tmp_path, n, how):
    """Neither after a failure nor otherwise: refused before anything is checked."""
    result, file = saved
    before, baseline = file.read_bytes(), file
    if how == "spelling":
        baseline = tmp_path / ".." / tmp_path.name / "b.json"
    elif how == "link":
        baseline = tmp_path / "link.json"
        baseline.symlink_to(file)
    elif how == "object":
        baseline = result
    lines = []
    failure = failure_of(
        first(n), baseline=baseline, metric="mrr@5", save=file, record=lines.append
    )
    assert (str(failure).startswith("save: "), lines) == (True, [])
    assert file.read_bytes() == before


def test_a_failure_is_not_saved(tmp_path):
    """Into no file, also where the result passes another gate afterwards, and says so."""
    bad, lines, accepted = first(10), [], tmp_path / "accepted.json"
    first(40).to_json(accepted)
    before = accepted.read_bytes()
    for target in (accepted, tmp_path / "new.json"):
        failure = failure_of(bad, {"mrr@5": 0.9}, save=target)
        assert f"not saved in {target}" in str(failure)
    KragGate(lines.append)(bad, {"mrr@5": 0.1}, save=accepted)
    assert lines[-1].startswith(f"not saved in {accepted}")
    assert accepted.read_bytes() == before
    assert not (tmp_path / "new.json").exists()


def test_a_failure_is_noted_where_the_result_was_saved(tmp_path):
    """By a gate that it passed before: else a history would take it for good."""
    result, file = first(30), tmp_path / "new.json"
    KragGate(print)(result, {"mrr@5": 0.1}, save=file)
    assert EvaluationResult.from_json(file).gate == "passed"
    failure_of(result, {"mrr@5": 0.9}, save=file)
    read = EvaluationResult.from_json(file)
    assert read.verdicts == {"mrr@5 >= 0.1": "passed", "mrr@5 >= 0.9": "failed"}
    assert read.gate == "failed"


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_interval_has_none(tmp_path):
    """Nothing was found, or a run in parts kept sums alone: there are no bounds to tell."""
    result = OfflineRetrievalEvaluator([["a"]] * 40, [["x"]] * 40).evaluate(5)
    told = str(failure_of(result, {"mean_rank@5": 2, "mrr@5": 0.5}))
    assert ("interval of mrr@5" in told, "nan" in told) == (True, False)
    file, lines = tmp_path / "run.jsonl", []
    file.write_text('{"question": "When?", "actual": ["a", "b"], "predicted": ["a", "x"]}\n')
    told = failure_of(evaluate_file(file, 2, chunk_size=1), {"recall@2": 0.8}, record=lines.append)
    assert [line.partition(":")[0] for line in lines] == ["failed"]
    assert "interval" not in str(told)


@pytest.mark.parametrize(
    "asked",
    [
        {"floors": {"recall@1": 80}},
        {},
        {"floors": {"recall": 0.8}},
        {"baseline": "nowhere.json", "metric": "recall@1"},
        {"baseline": RESULT, "history": "runs", "metric": "recall@1"},
        {"history": "runs", "metric": "recall@1", "treshold": 1},
        {"baseline": RESULT, "treshold": 1, "metric": "recall@1"},
        {"baseline": RESULT, "last": 3, "metric": "recall@1"},
        {"result": {"recall@5": 0.9}, "floors": {"recall@5": 0.8}},
    ],
)
def test_what_is_refused(asked):
    """What is no result, and what ``check`` refuses; nothing is recorded of it."""
    lines = []
    failure = failure_of(**{"result": RESULT, **asked}, record=lines.append)
    assert (failure.pytrace, failure.__context__, lines) == (False, None, [])


def test_pytest_finds_it_by_itself():
    """The entry point names this module."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"krag_eval": PLUGIN}


def test_it_loads_with_every_run_and_weighs_nothing():
    """Beside pytest itself, it loads none of the packages that evaluate."""
    code = f"""
import sys, pytest
before = set(sys.modules)
import {PLUGIN}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(new - sys.stdlib_module_names))
"""
    assert printed(code).split() == ["krag_eval", "lazy_loader"]
