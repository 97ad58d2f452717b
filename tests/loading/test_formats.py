"""Formats: one entry each, also those that an installed package brings."""

import gzip

import pytest
from click.testing import CliRunner
from places import TESTS
from refusals import blamed

from krag_eval import evaluate_file, load_dataset
from krag_eval.cli import main
from krag_eval.loading.formats import FORMATS, format_of

PLUGIN = TESTS / "example_plugin"
LINES = "When?=At nine.|At ten.\nWhere?=Here.\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file in the format of the example, which is installed."""
    monkeypatch.syspath_prepend(PLUGIN)
    path = tmp_path / "qa.pairs.gz"
    path.write_bytes(gzip.compress(LINES.encode()))
    return path


def test_every_format_is_known_by_name_and_ending():
    """No ending stands for two formats."""
    endings = [ending for one in FORMATS.values() for ending in one.endings]
    assert len({*endings}) == len(endings)
    for one in FORMATS.values():
        assert {format_of(f"qa{ending}") for ending in one.endings} == {one}


def test_an_installed_format_is_loaded(path):
    """By its ending, and by its name."""
    dataset = load_dataset(path)
    assert (dataset.questions, dataset.lines) == (["When?", "Where?"], [1, 2])
    assert dataset.predicted == [["At ten.", "At nine."], ["Here."]]
    assert load_dataset(path.rename(path.with_name("qa")), format="pairs") == dataset


def test_an_installed_format_is_evaluated_in_chunks(path, tmp_path):
    """The first answer is found at rank 2, and at rank 1: the MRR is 3/4."""
    result = evaluate_file(path, 5, per_query=tmp_path / "rows.csv", chunk_size=1)
    assert result.averages()["mrr"] == 0.75


@pytest.mark.parametrize("options", [[], ["--chunk-size", "1"]])
def test_the_shell_reads_an_installed_format(path, options):
    """In memory and in chunks."""
    command = ["evaluate", str(path), "--metric", "mrr@5", *options]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, "0.75" in done.output) == (0, True), done.output


def test_an_unknown_format_is_refused(path):
    """With all that there are."""
    with blamed("format", match=r"'pairs', 'jsonl'"):
        load_dataset(path, format="pears")
