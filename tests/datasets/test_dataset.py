"""What was read, on its way to an evaluator."""

from pathlib import Path

from krag_eval.datasets import Dataset, demo_dataset, read_jsonl

LINE = '{"question": "When?", "actual": ["nine"], "predicted": ["eight", "nine"]}'


def written(folder: Path, content: str) -> Path:
    """Write a file."""
    path = folder / "run.jsonl"
    path.write_text(content, "utf-8")
    return path


class TestDataset:
    """What was read, on its way to an evaluator."""

    def test_the_evaluator_gets_labels_and_options(self) -> None:
        """Queries are labelled by their questions; options are passed on."""
        dataset = Dataset(["Q"], [["a"]], [["x a y"]])
        evaluator = dataset.evaluator(matcher="contains")
        assert evaluator.queries == ["Q"]
        assert evaluator.calculate_recall(k=1)["macro_recall"] == 1.0

    def test_defaults_of_the_format_come_first_and_options_last(self) -> None:
        """What a reader found sensible can be overruled, labels included."""
        dataset = Dataset(["Q"], [["a"]], [["x a y"]], defaults={"matcher": "contains"})
        assert dataset.evaluator().calculate_mrr() == {"mrr": 1.0}
        assert dataset.evaluator(queries=["other"]).queries == ["other"]
        assert dataset.evaluator(matcher="id").matcher.name == "id"

    def test_its_repr_does_not_print_the_texts(self, tmp_path: Path) -> None:
        """In a notebook, a dataset shows what it is, in one line."""
        path = written(tmp_path, LINE)
        assert repr(read_jsonl(path)) == f"Dataset of 1 queries from {path}"

    def test_the_demo_comes_with_the_package(self) -> None:
        """The demo data needs no path."""
        assert demo_dataset().n_queries >= 20
