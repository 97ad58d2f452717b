"""What a worker does with its rows."""

import pickle

import pandas as pd
import pytest
from cluster_samples import local, sample

from krag_eval import Matcher
from krag_eval.distributed.worker import PARTIAL, Fields, Task, unpacked
from krag_eval.partitions import PartitionPlan

FIELDS = Fields("question", "actual", "predicted")


def task_of(plan):
    """Pack a plan as an engine would."""
    return Task.of(plan, FIELDS, pickle.dumps)


def test_frames_of_a_partition_become_rows_and_a_partial_each():
    """However the partition is cut into frames; the rows are those of a local run."""
    rows, expected = sample(20), local(sample(20), matcher="contains")
    plan = PartitionPlan.of((1, 3, 10), matcher="contains")
    table = pd.DataFrame(rows)
    frames = [table[:7], table[7:7], table[7:]]
    table = pd.concat(task_of(plan).rows(frames), ignore_index=True)
    queries = table[table[PARTIAL].isna()]
    assert queries["query"].tolist() == expected.labels
    assert queries["ndcg@3"].tolist() == expected.per_query(3)["ndcg"].tolist()
    partials = [*table[PARTIAL].dropna()]
    assert plan.result(map(unpacked, partials)).to_dict() == expected.to_dict()


class CountsLoads(Matcher):
    """A matcher whose model says how often it was unpickled in this process."""

    loads = 0

    def __init__(self):
        self.model = "heavy"

    def similarity(self, actual, predicted):
        return float(actual.page_content == predicted.page_content)

    def __setstate__(self, state):
        type(self).loads += 1
        vars(self).update(state)


def test_a_plan_is_unpacked_once_per_process():
    """So that a model within it is in memory once, whatever the number of partitions."""
    payload = task_of(PartitionPlan.of(5, matcher=CountsLoads())).payload
    CountsLoads.loads = 0
    for _ in range(3):
        list(Task(bytes(bytearray(payload)), FIELDS).rows([pd.DataFrame(sample(2))]))
    assert CountsLoads.loads == 1


def test_what_cannot_be_pickled_is_refused_before_anything_runs():
    """Naming the matcher."""

    class Local(Matcher):
        def similarity(self, actual, predicted):
            return 0.0

    with pytest.raises(TypeError, match=r"the matcher Local and the metrics .* not be pickled"):
        task_of(PartitionPlan.of(5, matcher=Local()))
