"""Agreement with a second independent tool, ranx, on the same judgements and runs.

ranx runs in a process of its own: it warns of what is not ours, and there its compiler can be
turned off, which takes longer than all the sums. It orders ties by position, so it is given the
order krag_eval reads, as distinct scores.
"""

import json
import os
import random
import subprocess
import sys

import pytest

from krag_eval.datasets import read_trec

K = 5
#: ranx's metric -> our column and cutoff, under the conventions of trec_eval, which ranx shares.
METRICS = {
    f"precision@{K}": ("precision", K),
    f"recall@{K}": ("recall", K),
    f"hit_rate@{K}": ("hit_rate", K),
    "map": ("average_precision", None),
    f"map@{K}": ("average_precision", K),
    "mrr": ("reciprocal_rank", None),
    "ndcg": ("ndcg", None),
    f"ndcg@{K}": ("ndcg", K),
    "f1": ("f1", None),
}
GRADES = {"binary": (1,), "graded": (1, 2, 3)}


PROGRAM = """
import json, sys
from ranx import Qrels, Run, evaluate
found = {}
for name, (judged, ranked) in json.load(sys.stdin).items():
    run = Run(ranked)
    evaluate(Qrels(judged), run, sys.argv[1:])
    found[name] = {
        metric: {topic: float(value) for topic, value in values.items()}
        for metric, values in run.scores.items()
    }
json.dump(found, sys.stdout)
"""


def judged_and_retrieved(grades):
    """Return positive judgements of 40 topics, and a run with many ties read over them."""
    source = random.Random(len(grades))
    corpus = [f"d{number}" for number in range(30)]
    judged, retrieved = {}, {}
    for topic in map(str, range(40)):
        relevant = source.sample(corpus, source.randint(1, 8))
        judged[topic] = {document: source.choice(grades) for document in relevant}
        found = source.sample(corpus, source.randint(1, 15))
        retrieved[topic] = {document: float(source.randint(1, 5)) for document in found}
    return judged, read_trec(judged, retrieved)


@pytest.fixture(scope="module")
def cases():
    """Return binary and graded judgements, each with a run."""
    return {name: judged_and_retrieved(grades) for name, grades in GRADES.items()}


@pytest.fixture(scope="module")
def theirs(cases):
    """Return ranx's values by case, metric and topic."""
    question = {
        name: (
            judged,
            {
                str(topic): {str(one): 1.0 / rank for rank, one in enumerate(documents, 1)}
                for topic, documents in zip(dataset.queries, dataset.predicted, strict=True)
            },
        )
        for name, (judged, dataset) in cases.items()
    }
    return json.loads(
        subprocess.check_output(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, *METRICS],
            input=json.dumps(question),
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            text=True,
        )
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", GRADES)
def test_agreement_per_topic(
    cases,
    theirs,
    name,
    metric,
):
    """Precision, recall, success, MAP, MRR, nDCG (linear gain) and F1, with and without cutoff."""
    column, k = METRICS[metric]
    result = cases[name][1].evaluator().evaluate([k])
    ours = result.per_query(k)[column].to_dict()
    assert ours == pytest.approx(theirs[name][metric], abs=1e-9)
