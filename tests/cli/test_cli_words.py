"""The shell's words: options in place of arguments, and no advice that exists in Python alone."""

import inspect
import json
import re

import click
import pandas as pd
import pytest
from cli_runs import SAMPLE, invoked, run, written
from places import DATA

from krag_eval import KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.cli import main
from krag_eval.core import DEFAULT_CUTOFFS, PLAN_OPTIONS
from krag_eval.datasets import read_jsonl
from krag_eval.errors import Advice, InvalidInput, InvalidType, Place


@pytest.mark.parametrize(
    ("command", "argument", "shown"),
    [
        ("evaluate", "k", "-k"),
        ("evaluate", "n_jobs", "--jobs"),
        ("evaluate", "floors", "--fail-under"),
        ("evaluate", "actual_field", "--actual-field"),
        ("evaluate", "actual", "--actual-field"),
        ("gate", "max_drop", "--max-drop"),
        ("gate", "new", "NEW"),
        ("history", "k", "k"),
        ("compare", "files", "FILE"),
        ("trec", "runs", "RUN"),
        *((name, one.name, one.opts[0]) for name, command in sorted(main.commands.items())
          for one in command.params if isinstance(one, click.Option)),
    ],
)  # fmt: skip
def test_an_argument_is_called_as_it_is_typed(command, argument, shown):
    """What the command does not have keeps its name."""
    error = InvalidInput(argument, "must be another, got this")
    assert main.worded(error, command) == f"{shown} must be another, got this."


def test_what_an_error_says_of_itself_needs_no_option():
    """A sentence of its own, or the content of a file, is no matter of what was typed."""
    error = InvalidInput("results", ": 'a' and 'b' cannot be compared")
    assert main.worded(error, "gate") == "'a' and 'b' cannot be compared."
    error = InvalidType("actual", "must be a list, got text", place=Place("qa.csv", 3))
    assert main.worded(error, "evaluate") == "qa.csv:3: actual must be a list, got text."


@pytest.mark.parametrize(
    ("command", "settings", "shown"),
    [
        ("evaluate", {"no_ground_truth": "skip"}, "--no-ground-truth skip"),
        ("evaluate", {"matcher": "coverage(min_run=3)"}, "--matcher 'coverage(min_run=3)'"),
        ("evaluate", {"resume": False}, "--no-resume"),
        ("evaluate", {"resume": True}, "--resume"),
        ("evaluate", {"per_query": ...}, "--per-query OUT"),
        ("evaluate", {"k": ...}, "-k K"),
        ("evaluate", {"threshold": 0.5}, "--threshold 0.5"),
        ("evaluate", {"budget": ...}, "--budget N"),
        ("evaluate", {"length": "characters"}, "--length characters"),
        # What reads saved results names options of what saved them.
        ("gate", {"per_query": ...}, "--per-query OUT"),
        ("compare", {"per_query": ...}, "--per-query OUT"),
        # What the command has no option for cannot be done there.
        ("evaluate", {"queries": ...}, ""),
        ("trec", {"matcher": "contains"}, ""),
        # Only one of those listed can be typed, and a function is none of them.
        ("evaluate", {"length": ...}, ""),
    ],
)
def test_advice_names_options(command, settings, shown):
    """With values as a shell takes them, of errors and of warnings."""
    error = InvalidInput("", "nothing was found", Advice("try {}", **settings))
    told = f"; try {shown}." if shown else "."
    assert main.worded(error, command) == f"nothing was found{told}"
    warning = KragEvalWarning("Nothing was found.", Advice("Try {}", **settings))
    told = f" Try {shown}." if shown else ""
    assert main.worded(warning, command) == f"Nothing was found.{told}"


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_the_defaults_shown_are_those_of_python(name):
    """Of every setting of an evaluator; nothing is no default."""
    shown = main.commands[name].make_context(name, ["FILE"]).params
    settings = inspect.signature(OfflineRetrievalEvaluator).parameters
    for one in PLAN_OPTIONS:
        assert shown[one] in (settings[one].default or "default", None)
    assert shown["k"] == DEFAULT_CUTOFFS
    assert "()" not in run(name, "--help").output


# What only Python understands: calls, keyword arguments, quoted values of them.
PYTHON = re.compile(
    r"\b[a-z_]+=[\[\"'…({]|\b(True|False|None)\b|\w\(…?\)|\b[a-z_]+\([a-z_]*=|\w\.[a-z_]+\("
)
LINE = {"question": "Q", "actual": ["a"], "predicted": ["a"]}


def lines(*changes):
    """Return lines of JSON."""
    return "".join(json.dumps(LINE | change) + "\n" for change in changes)


FILES = {
    "good.jsonl": SAMPLE,
    "other.jsonl": SAMPLE.replace("First?", "Other?"),
    "elsewhere.jsonl": SAMPLE.replace("doc1", "doc9"),
    "nothing.jsonl": lines({"predicted": ["b"]}),
    "blank.jsonl": lines({"predicted": [" "]}),
    "empty.jsonl": "",
    "broken.jsonl": "oops\n",
    "cp949.jsonl": '{"question": "언제?"}'.encode("cp949"),
    "cp949.csv": "question,actual,predicted\n언제?,['a'],['a']\n".encode("cp949"),
    "untrue.jsonl": lines({"actual": []}),
    "text.jsonl": lines({"actual": "a"}),
    "texts.jsonl": lines({"predicted": [3]}),
    "dict.jsonl": lines({"actual": [{"text": "a"}]}),
    "unlabelled.jsonl": lines({}, {"question": None}),
    "twice.jsonl": lines({"actual": ["a", "a"]}),
    "graded.jsonl": lines({"actual": [{"page_content": "a", "metadata": {"grade": -1}}]}),
    "ids.jsonl": lines({"actual": [{"page_content": "a", "id": "1"}]}),
    "lacking.jsonl": '{"question": "Q", "predicted": []}\n',
    "text.csv": "question,actual,predicted\nQ,['a'],a\n",
    "unnamed.csv": "q,gold,hits\nQ,['a'],['a']\n",
    "semicolons.csv": "question;actual;predicted\nQ;['a'];['a']\n",
    "test-set.csv": "question,actual\nQ,['a']\n",
    "both.csv": "question,actual,predicted,reference_contexts\nQ,['a'],['a'],['a']\n",
    "frame.json": '{"question": {"0": "Q"}, "actual": {"0": ["a"]}, "predicted": {"0": ["a"]}}',
    "object.json": "{}",
    "autorag.csv": "qid,query,retrieval_gt\n1,Q,[['a']]\n",
    "workbook.xlsx": b"PK\x03\x04",
    "damaged.json": '{"format": "krag_eval.result"}',
    "damaged.parquet": b"PAR1oops",
    "folder/a.txt": "",
    "mixed/a.jsonl": SAMPLE,
    "mixed/b.parquet": b"PAR1",
    "deep/in/a.jsonl": SAMPLE,
}
GOOD = "evaluate good.jsonl"
CASES = [
    *(f"evaluate '{name}'" for name in FILES),
    *(f"evaluate {name} --chunk-size 1" for name in FILES if "/" not in name),
    *(f"evaluate {name} --per-query a.csv"
      for name in ("good.jsonl", "test-set.csv", "saved.json")),
    *(f"evaluate '{name}'" for name in ("folder", "mixed", "deep", "", ".", "saved.json")),
    *(f"{GOOD} -m '{name}'" for name in (
        "id", "metadata", "coverage(min_run=x)", "coverage(tokenizer=x)", "text(x=1)",
        "contains(case_sensitive=maybe)", "embedding", "rouge", "coverage(", "fuzzy", "",
    )),
    *(f"{GOOD} --conventions '{one}'" for one in ("gian=linear", "gain", "gain=,gain=linear", "")),
    *(f"{GOOD} -k '{one}'" for one in ("x", "1,3", "", 2**60, "all ")),
    *(f"{name} --{role}-field '{one}'" for role in ("question", "actual", "predicted")
      for name in (GOOD, "evaluate unnamed.csv") for one in ("x", "", "gold", "hits", "actual")),
    f"{GOOD} --grade-key grade", f"{GOOD} --grade-key ''", f"{GOOD} --jobs -2",
    "evaluate graded.jsonl --grade-key grade", "evaluate ids.jsonl -m id",
    "evaluate untrue.jsonl --no-ground-truth skip", "evaluate good.parquet --intervals",
    *(f"{GOOD} --fail-under '{one}'" for one in ("mean_rank@1=0.5", "mrr@0=1", "mrr@1=nan", "")),
    f"{GOOD} --averaging micro --fail-under recall@1=0.5",
    *(f"compare good.jsonl {other}" for other in (
        "", "other.jsonl", "elsewhere.jsonl", "untrue.jsonl", "- -m contains",
    )),
    *(f"compare saved.json {other}" for other in (
        "bare.json", "copy.json -k 3", "parted.json", "damaged.json", "none.json",
        "good.jsonl -m contains",
    )),
    *(f"compare good.jsonl saved.json --metric '{one}'"
      for one in ("mrr@0", "@1", "", "rejection_rate@1", "mrr@1,mrr@1")),
    "compare good.jsonl saved.json --averaging micro --metric recall@1",
    *(f"gate {name} --baseline saved.json --metric mrr@1"
      for name in ("bare.json", "parted.json", "other.json")),
    *(f"gate saved.json --baseline saved.json --metric mrr@1 --max-drop {one}"
      for one in ("nan", "inf")),
    *(f"gate {name} --fail-under mrr@1=1" for name in ("micro.json", "damaged.json", "good.jsonl")),
    "gate micro.json --fail-under recall@1=0.5", "gate parted.json --baseline saved.json",
    *(f"trec {files}" for files in (
        "QRELS QRELS", "TIED TIED", "QRELS TIED", "QRELS TIED --relevance-level 99",
        "QRELS good.jsonl", "empty.jsonl TIED", "QRELS empty.jsonl", "QRELS object.json",
    )),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write files that have something wrong, and results of all kinds."""
    made = tmp_path_factory.mktemp("words")
    for link, name in (("QRELS", "graded.qrels"), ("TIED", "tied.run")):
        (made / link).symlink_to(DATA / name)
    for name, content in FILES.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    good = read_jsonl(made / "good.jsonl")
    good.evaluator().evaluate().to_json(made / "saved.json")
    good.evaluator(matcher="contains").evaluate().to_json(made / "copy.json")
    good.evaluator(averaging_method="micro").evaluate().to_json(made / "micro.json")
    read_jsonl(made / "other.jsonl").evaluator().evaluate().to_json(made / "other.json")
    run("evaluate", made / "good.jsonl", "--chunk-size", 1, "--json", made / "bare.json")
    out = made / "out"
    out.mkdir()
    rows, parted = out / "rows.csv", made / "parted.json"
    run("evaluate", made / "good.jsonl", "--per-query", rows, "--json", parted)
    rows.unlink()
    pd.DataFrame([LINE]).to_parquet(made / "good.parquet")
    return made


@pytest.mark.parametrize("line", CASES)
def test_nothing_is_said_that_only_python_understands(folder, monkeypatch, line):
    """Of all that can go wrong in files, through every command; warnings too."""
    monkeypatch.chdir(folder)
    said = run(line, stdin=SAMPLE).stderr
    # Names of matchers and conventions, and what was typed, may have parentheses.
    named = r"'[^']*'|\S+\.(?:jsonl|csv|json)\S*|contains\(fold_whitespace=yes\)"
    for quoted in re.findall(named, said):
        said = said.replace(quoted, "")
    assert not PYTHON.search(said), said


def n_words(command):
    """Return how many words a command takes at most; a negative number is any."""
    each = [one.nargs for one in command.params if isinstance(one, click.Argument)]
    return min(each, default=0) if min(each, default=0) < 0 else sum(each)


@pytest.mark.parametrize("name", [n for n, one in main.commands.items() if n_words(one) >= 0])
def test_words_that_are_left_over_say_what_there_may_be(name):
    """Whatever the command is: its arguments as the help has them."""
    command = main.commands[name]
    context = click.Context(command)
    needed = [one for one in command.params if one.required and isinstance(one, click.Option)]
    options = [word for one in needed for word in (one.opts[0], "chunks.jsonl")]
    words = ["golden"] * (n_words(command) + 1)  # a word that every argument may be
    ended = invoked(name, *words, *options)
    assert ended.exit_code == 2
    takes = command.collect_usage_pieces(context)[1:]
    assert f"{name} takes {' '.join(takes) or 'options alone'}." in ended.stderr


def test_several_files_are_to_be_compared():
    """Also where none of them is there; a question of several words is to be quoted."""
    ended = invoked("evaluate", "a", "b", "c")
    assert "'krag-eval compare FILE FILE ...'" in ended.stderr
    ended = invoked("explain", "a", "What", "is", "it?")
    assert "Put a question with spaces in quotes." in ended.stderr


@pytest.mark.parametrize("run", ["run.jsonl", None])
def test_a_query_that_was_forgotten_is_asked_for(sample, run):
    """Behind two files as behind one; nothing is said of columns."""
    written("golden.jsonl", [{"question": "When?", "actual": ["a"]}])
    written("run.jsonl", [{"question": "When?", "predicted": ["a"]}])
    files = ["golden.jsonl", *([run] if run else [])]
    ended = invoked("explain", *files)
    assert ended.exit_code == 2
    assert f"'krag-eval misses {' '.join(files)}' lists them" in ended.stderr
    assert "column" not in ended.stderr
