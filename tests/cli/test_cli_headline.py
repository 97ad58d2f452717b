"""``krag-eval evaluate`` on ground truth, a run and the chunks of an index: every way to ask."""

import json

import pytest
from cli_runs import content, refusal, run, written

from krag_eval import METRICS
from krag_eval.core import REJECTION_RATE, averages_of

CLOSED = "The library opens at nine in the morning on weekdays and at ten on Saturdays."
BOOKS = "Members may borrow up to eight books at a time for three weeks each."
ELSEWHERE = "something else entirely stands here today"
CHUNKS = {
    "c1": f"{CLOSED} It is closed on Sundays.",
    "c2": "Members may borrow up to eight books",
    "c3": "books at a time for three weeks each. Late fees apply.",
    "c4": ELSEWHERE,
}
GOLDEN = [("q1", "When is it open?", [CLOSED]), ("q2", "How many books?", [BOOKS])]
UNANSWERABLE = ("q3", "Who won?", [])
RUN = {"q1": ["c1", "c2"], "q2": ["c4", "c3"], "q3": ["c4"]}

# What needs lists that these files do not have, or aspects.
COMPUTED = [
    metric.at()
    for metric in METRICS.values()
    if not (metric.needs_judged or metric.needs_aspects or metric.needs_list)
]
#: Every name that --metric takes, with the averages it prints.
NAMES = {
    **{metric.name: averages_of([metric]) for metric in COMPUTED},
    **{name: [name] for metric in COMPUTED for name in averages_of([metric])},
    REJECTION_RATE.key: [REJECTION_RATE.key],
}
OF_WORDS = averages_of(one for one in COMPUTED if one.needs_words).keys()
AVERAGES = [*averages_of(COMPUTED), REJECTION_RATE.key]
POLICIES = ("error", "skip", "zero")
INDEX = "--index chunks.jsonl"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two questions with an answer, one without, and what was retrieved for all."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": id_, "question": text, "actual": actual} for id_, text, actual in GOLDEN]
    written("answerable.jsonl", rows)
    id_, text, actual = UNANSWERABLE
    written("golden.jsonl", [*rows, {"id": id_, "question": text, "actual": actual}])
    run_of = [{"id": id_, "predicted": [CHUNKS[one] for one in ids]} for id_, ids in RUN.items()]
    written("run.jsonl", run_of)
    written("answers.jsonl", run_of[:2])
    written("chunks.jsonl", [{"id": id_, "text": text} for id_, text in CHUNKS.items()])


def call(policy, metric, index):
    """Return the command line for questions of which one has no answer, where that may be."""
    two = "answerable.jsonl answers.jsonl" if policy == "error" else "golden.jsonl run.jsonl"
    named = f"--metric '{metric}'" if metric else ""
    return f"evaluate {two} --no-ground-truth {policy} -k 1,2 {named} {index}"


@pytest.mark.parametrize("index", ["", INDEX], ids=["alone", "index"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("metric", [None, "all", *NAMES])
def test_every_metric_under_every_policy_with_and_without_an_index(metric, policy, index):
    """It is printed, or refused by its own option with what to do."""
    line = call(policy, metric, index)
    if {*NAMES.get(metric, ())} & OF_WORDS and not index:
        assert all(option in refusal(line) for option in ("--metric", "--matcher coverage"))
        return
    if metric == REJECTION_RATE.key and policy != "skip":
        assert all(option in refusal(line) for option in ("--metric", "--no-ground-truth skip"))
        return
    if metric is None:
        assert run(line).exit_code == 0
    found = content(line)
    assert ("diagnosis" in found) == bool(index)
    keys = {name.rpartition("@")[0] for name in found["metrics"]}
    if metric in (None, "all"):
        assert (REJECTION_RATE.key in keys) == (policy == "skip")
        assert ("token_iou" in keys) == bool(index)
    else:
        assert keys == {*NAMES[metric]}


@pytest.mark.parametrize("index", ["", INDEX], ids=["alone", "index"])
@pytest.mark.parametrize("average", AVERAGES)
def test_every_floor_with_and_without_an_index(average, index):
    """A floor may be on any average, as --metric may name it; one of words needs coverage."""
    result = run(f"{call('skip', None, index)} --fail-under '{average}@2=1'")
    if average in OF_WORDS and not index:
        assert result.exit_code == 2
        assert all(option in result.stderr for option in ("--fail-under", "--matcher coverage"))
    else:
        # By text nothing is found. By words the first passage is at rank 1, half of the other came
        # back, and nothing twice: where lower is better 1 is enough.
        passes = index and average in ("mean_rank", "redundancy")
        assert result.exit_code == (0 if passes else 1)
        assert f"{average}@2" in result.output


def test_no_rejection_rate_where_every_question_has_an_answer():
    """The policy alone makes none."""
    line = "evaluate answerable.jsonl answers.jsonl --no-ground-truth skip"
    result = run(f"{line} --metric rejection_rate")
    assert (result.exit_code, "--metric" in result.stderr) == (2, True)


def test_a_file_of_spans_brings_the_matcher_that_counts_words():
    """A metric of words may be named where no matcher is: the file says how it is compared."""
    rows = [{"question": "q", "actual": [{"source": "a.md", "start": 0, "end": 100}],
             "predicted": [{"source": "a.md", "start": 0, "end": 70}]}]  # fmt: skip
    written("spans.jsonl", rows)
    line = "evaluate spans.jsonl -k 1"
    assert content(f"{line} --metric micro_token_recall")["metrics"] == {
        "micro_token_recall@1": 0.7
    }
    assert run(f"{line} --fail-under token_recall@1=0.7").exit_code == 0
    # Whoever asks for one more metric in a floor keeps those that there are without it.
    usual, more = (content(f"{line} {floor}")["metrics"] for floor in ("", "--fail-under rbp@1=0"))
    assert more.keys() - usual.keys() == {"rbp(p=0.8)@1"}
    assert usual.keys() <= more.keys()


def test_a_floor_keeps_the_metrics_of_other_lists():
    """As do those of a file that says what must not come back."""
    rows = [{"question": "q", "actual": ["a"], "predicted": ["a", "b"], "unwanted": ["b"]}]
    written("unwanted.jsonl", rows)
    known = content("evaluate unwanted.jsonl -k 2 --fail-under rbp@2=0")["metrics"]
    assert {"unwanted@2", "clean@2", "rbp(p=0.8)@2"} <= known.keys()


def test_a_run_in_chunks_computes_the_same():
    """With the same refusal."""
    line = "evaluate golden.jsonl run.jsonl --no-ground-truth skip -k 2 --chunk-size 2"
    whole = content(f"{line} -m coverage --fail-under rbp@2=0")["metrics"]
    memory = content(f"{call('skip', None, '-m coverage')} --fail-under rbp@2=0")["metrics"]
    assert whole == {name: memory[name] for name in whole}
    assert "--metric" in refusal(f"{line} --metric token_iou")
    assert json.loads(run(f"{line} --metric rejection_rate --format json").stdout)["metrics"] == {
        "rejection_rate@2": 0.0
    }
