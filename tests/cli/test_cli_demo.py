"""``krag-eval demo``: the main job on data that ships in the package."""

import json

from cli_runs import printed, run, shell

from krag_eval.datasets import demo_dataset


class TestDemo:
    """The main job on data that ships in the package."""

    def test_prints_the_numbers_of_the_demo_data(self) -> None:
        """The table is that of the packaged data, matched by equal text."""
        output = run("demo").output
        expected = demo_dataset().evaluator().calculate_mrr(k=5)["mrr"]
        assert printed(output)["mrr"][2] == f"{expected:.4f}"
        assert "matcher=text" in output

    def test_compares_matchers(self) -> None:
        """The same lists under "contains" score higher, at the same cutoff."""
        table = printed(run("demo").output.partition("matched in other ways")[2])
        assert table["matcher"] == ["macro_recall@5", "mrr@5", "ndcg@5"]
        expected = demo_dataset().evaluator(matcher="contains").calculate_recall(k=5)
        assert f"contains  {' ' * 9}{expected['macro_recall']:.4f}" in run("demo").output

    def test_says_where_to_go_next(self) -> None:
        """A line of the file format that works, a command, and the documentation."""
        output = run("demo").output
        example = next(line for line in output.splitlines() if line.strip().startswith("{"))
        assert set(json.loads(example)) == {"question", "actual", "predicted"}
        assert "krag-eval evaluate results.jsonl" in output
        assert "docs/metrics.md" in output

    def test_is_narrow_and_free_of_warnings(self) -> None:
        """Nothing wider than 100 columns, nothing on standard error."""
        done = shell("demo")
        assert (done.returncode, done.stderr) == (0, "")
        assert max(map(len, done.stdout.splitlines())) <= 100
