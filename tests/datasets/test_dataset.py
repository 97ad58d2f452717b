"""From a data set to an evaluator."""

from dataclasses import replace

import pytest

from krag_eval.datasets import Dataset, DatasetError, demo_dataset


class TestDataset:
    """What was read, on its way to an evaluator."""

    def test_the_evaluator_gets_labels_and_options(self):
        """Queries are labelled by their questions; options are passed on."""
        dataset = Dataset(["Q"], [["a"]], [["x a y"]])
        evaluator = dataset.evaluator(matcher="contains")
        assert evaluator.queries == ["Q"]
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 1.0

    def test_defaults_of_the_format_come_first_and_options_last(self):
        """What a reader found sensible can be overruled, labels included."""
        dataset = Dataset(["Q"], [["a"]], [["x a y"]], defaults={"matcher": "contains"})
        assert dataset.evaluator().calculate_mrr() == {"mrr": 1.0}
        assert dataset.evaluator(queries=["other"]).queries == ["other"]
        assert dataset.evaluator(matcher="id").matcher.name == "id"

    def test_without_retrieved_documents_there_is_nothing_to_evaluate(self):
        """The remedy is to ask a retriever."""
        dataset = Dataset(["q1"], [["a"]], questions=["When?"], source="qa.jsonl")
        with pytest.raises(DatasetError, match=r"^qa\.jsonl: .*evaluate_retriever\(retriever, "):
            dataset.evaluator()
        with pytest.raises(DatasetError, match=r"^dataset: holds no retrieved documents"):
            replace(dataset, source="").evaluator()
        assert repr(dataset) == "Dataset of 1 queries from qa.jsonl, nothing retrieved yet"
        retrieved = replace(dataset, predicted=[["a text"]])
        assert repr(retrieved) == "Dataset of 1 queries from qa.jsonl"

    def test_equality_is_that_of_queries_and_documents(self):
        """What to ask is part of it; where it was read is not."""
        dataset = Dataset(["q1"], [["a"]], [["b"]], questions=["When?"])
        assert dataset == replace(dataset, source="a.jsonl", lines=[1], defaults={"matcher": "id"})
        for part in (
            {"queries": ["q"]},
            {"actual": [[]]},
            {"predicted": None},
            {"questions": None},
        ):
            assert dataset != replace(dataset, **part)

    def test_the_demo_comes_with_the_package(self):
        """The demo data needs no path."""
        assert demo_dataset().n_queries >= 20
