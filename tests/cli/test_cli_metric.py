"""``krag-eval evaluate --metric``: what is computed, and what is printed."""

import json
from pathlib import Path

import pytest
from cli_runs import printed, run, table, written

from krag_eval.core import averages_of
from krag_eval.core.scoring.metrics import DEFAULT_METRICS, metric_named

CALL = "evaluate sample.jsonl"


@pytest.mark.parametrize(
    ("options", "cutoffs"),
    [
        ("--metric ndcg@2", ["@2"]),
        ("-k 1 --metric mrr@2", ["@1", "@2"]),
        ("--budget 3 --metric mrr@2", ["@3w", "@2"]),
        ("--metric mrr@2,ndcg", ["@1", "@3", "@5", "@10", "@2"]),
    ],
)
def test_a_cutoff_in_the_name(options, cutoffs):
    """It stands alone, or behind those of -k, of a budget, or the usual ones of another name."""
    assert table(f"{CALL} {options}")["metric"] == cutoffs


@pytest.mark.parametrize(
    ("named", "rows"),
    [
        # docs/metrics.md works the values out.
        ("ndcg@2", {"ndcg": ["0.6934"]}),
        ("micro_recall@2", {"micro_recall": ["0.6000"]}),
        ("recall@2", {"macro_recall": ["0.5833"], "micro_recall": ["0.6000"]}),
        # 0.5 for the first query, whose first document is relevant, 0 otherwise.
        ("'rbp(p=0.5)@1, mrr@1'", {"rbp(p=0.5)": ["0.2500"], "mrr": ["0.5000"]}),
    ],
)
def test_what_is_named_is_printed_alone(named, rows):
    """Of a metric both averages; a comma between parameters is none between names."""
    found = table(f"{CALL} --metric {named}")
    assert {name: found[name] for name in found if set(found[name][0]) <= {*"0123456789."}} == rows


def test_only_what_is_asked_for_is_computed():
    """The saved result has the metrics named, and those of floors."""
    for floor, metrics, code in (
        ("", {"ndcg@2"}, 0),
        ("--fail-under mrr@2=0.9", {"ndcg@2", "mrr@2"}, 1),
    ):
        result = run(f"{CALL} --metric ndcg@2 {floor} --json out.json")
        assert json.loads(Path("out.json").read_text("utf-8"))["metrics"].keys() == metrics
        assert (result.exit_code, "mrr" in printed(result.stdout)) == (code, False)


def test_slices_and_intervals_are_of_what_was_named():
    """Nothing else is in them."""
    output = run(f"{CALL} --metric mrr@2 --by items --intervals").stdout
    assert [name in output for name in ("mrr@2", "recall", "ndcg")] == [True, False, False]


def test_every_average_names_its_metric():
    """Whatever is printed can be typed."""
    for metric in DEFAULT_METRICS.values():
        assert {metric_named(one) for one in averages_of([metric])} == {metric}


def test_an_aspect_key_adds_the_metrics_of_aspects():
    """Beside the default ones, or alone where they are named; of two aspects one came first."""
    documents = [{"page_content": one, "metadata": {"part": one}} for one in ("A", "B")]
    written("aspects.jsonl", [{"question": "q", "actual": documents, "predicted": ["A", "x"]}])
    typed = "evaluate aspects.jsonl --aspect-key part"
    rows = table(f"{typed} -k 2")
    assert rows["aspect_recall"] == ["0.5000"]
    assert rows["alpha_ndcg(alpha=0.5)"] == ["0.6131"]  # 1 / (1 + 1 / log2(3))
    assert "aspects=part" in run(f"{typed} -k 2").output
    assert table(f"{typed} --metric aspect_recall@1")["aspect_recall"] == ["0.5000"]
    assert run(f"{typed} -k 2 --fail-under 'alpha_ndcg(alpha=0.9)@2=0.7'").exit_code == 1
