"""``krag-eval evaluate --metric``: what is computed, and what is printed."""

import json
from pathlib import Path

import pytest
from cli_runs import printed, refusal, run

from krag_eval.cli.options import _metric_of
from krag_eval.scoring.metrics import DEFAULT_METRICS, averages_of


class TestMetric:
    """Metrics, averages and cutoffs that were named."""

    def test_a_cutoff_in_the_name_stands_alone(self, sample: Path) -> None:
        """docs/metrics.md works the values out: nDCG@2 of the sample is 0.6934."""
        table = printed(run("evaluate", sample, "--metric", "ndcg@2").stdout)
        assert (table["metric"], table["ndcg"]) == (["@2"], ["0.6934"])
        assert table.keys() & {"mrr", "map", "recall", "macro_recall"} == set()

    def test_a_cutoff_in_the_name_is_added_to_others(self, sample: Path) -> None:
        """To those of -k, to a budget, and to the usual ones where another name has none."""
        for options, cutoffs in (
            (["-k", "1", "--metric", "mrr@2"], ["@1", "@2"]),
            (["--budget", "3", "--metric", "mrr@2"], ["@3w", "@2"]),
            (["--metric", "mrr@2,ndcg"], ["@1", "@3", "@5", "@10", "@2"]),
        ):
            assert printed(run("evaluate", sample, *options).stdout)["metric"] == cutoffs

    def test_an_average_is_printed_without_its_counterpart(self, sample: Path) -> None:
        """Micro recall@2 of the sample is 3/5; of a metric, both averages are printed."""
        table = printed(run("evaluate", sample, "--metric", "micro_recall@2").stdout)
        assert {name: cells for name, cells in table.items() if "recall" in name} == {
            "micro_recall": ["0.6000"]
        }
        table = printed(run("evaluate", sample, "--metric", "recall@2").stdout)
        assert (table["macro_recall"], table["micro_recall"]) == (["0.5833"], ["0.6000"])

    def test_commas_between_parameters_are_none_between_names(self, sample: Path) -> None:
        """rbp(p=0.5)@1: 0.5 for the first query, whose first document is relevant, 0 otherwise."""
        output = run("evaluate", sample, "--metric", "rbp(p=0.5)@1, mrr@1").stdout
        assert printed(output)["rbp(p=0.5)"] == ["0.2500"]

    def test_only_what_is_asked_for_is_computed(self, sample: Path, tmp_path: Path) -> None:
        """The saved result has the metrics named, and those of floors."""
        saved = tmp_path / "out.json"
        run("evaluate", sample, "--metric", "ndcg@2", "--json", saved)
        assert json.loads(saved.read_text("utf-8"))["metrics"].keys() == {"ndcg@2"}
        options = ("--metric", "ndcg@2", "--fail-under", "mrr@2=0.9")
        result = run("evaluate", sample, *options, "--json", saved)
        assert json.loads(saved.read_text("utf-8"))["metrics"].keys() == {"ndcg@2", "mrr@2"}
        assert (result.exit_code, "mrr" in printed(result.stdout)) == (1, False)

    def test_slices_and_intervals_are_of_what_was_named(self, sample: Path) -> None:
        """And of nothing else."""
        options = ("--metric", "mrr@2", "--by", "items", "--intervals")
        output = run("evaluate", sample, *options).stdout
        assert "mrr@2" in output
        assert "recall" not in output
        assert "ndcg" not in output

    @pytest.mark.parametrize("name", ["recal", "recall@", "recall@0", "rbp(p=2)", "", "mrr,"])
    def test_what_is_no_metric_is_refused(self, sample: Path, name: str) -> None:
        """By the name of the option, before the file is read."""
        assert refusal("evaluate", sample, "--metric", name).startswith("--metric")

    @pytest.mark.parametrize("name", ["macro_recall", "token_recall"])
    def test_what_is_not_computed_is_refused(self, sample: Path, name: str) -> None:
        """An average left out by --averaging, and words that the matcher does not know."""
        message = refusal("evaluate", sample, "--averaging", "micro", "--metric", name)
        assert message.startswith("--metric")

    def test_every_average_names_its_metric(self) -> None:
        """So that whatever is printed can be typed."""
        for metric in DEFAULT_METRICS.values():
            assert {_metric_of(one) for one in averages_of([metric])} == {metric}


def test_compare_takes_several_names_with_commas(sample: Path, tmp_path: Path) -> None:
    """The same option, spelled the same way."""
    other = tmp_path / "other.jsonl"
    other.write_text(sample.read_text("utf-8"), "utf-8")
    output = run("compare", sample, other, "--metric", "mrr@2,ndcg@2", "-k", 2).stdout
    assert {"mrr@2", "ndcg@2"} <= {*output.split()}


class TestAspects:
    """``--aspect-key``: the metadata key with the aspects of a question."""

    @pytest.fixture
    def aspects(self, tmp_path: Path) -> Path:
        """Return a file with two aspects, one of which came back first."""
        documents = [{"page_content": one, "metadata": {"part": one}} for one in ("A", "B")]
        row = {"question": "q", "actual": documents, "predicted": ["A", "x"]}
        path = tmp_path / "aspects.jsonl"
        path.write_text(json.dumps(row), "utf-8")
        return path

    def test_it_adds_the_metrics(self, aspects: Path) -> None:
        """Beside the default ones, or alone where they are named."""
        typed = ["evaluate", aspects, "--matcher", "text", "--aspect-key", "part"]
        table = printed(run(*typed, "-k", 2).output)
        assert table["aspect_recall"] == ["0.5000"]
        assert table["alpha_ndcg(alpha=0.5)"] == ["0.6131"]  # 1 / (1 + 1 / log2(3))
        assert "aspects=part" in run(*typed, "-k", 2).output
        alone = printed(run(*typed, "--metric", "aspect_recall@1").output)
        assert alone["aspect_recall"] == ["0.5000"]
        floor = run(*typed, "-k", 2, "--fail-under", "alpha_ndcg(alpha=0.9)@2=0.7")
        assert floor.exit_code == 1

    @pytest.mark.parametrize(
        "typed", [["--metric", "alpha_ndcg"], ["--fail-under", "alpha_ndcg@5=1"]]
    )
    def test_without_it_they_are_refused(self, aspects: Path, typed: list[str]) -> None:
        """With the option that is missing."""
        result = run("evaluate", aspects, "--matcher", "text", *typed)
        assert result.exit_code == 2
        assert "--aspect-key" in result.stderr
