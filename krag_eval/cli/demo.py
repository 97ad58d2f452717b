"""``krag-eval demo``: the main job on data that ships with the package."""

from __future__ import annotations

import click

from krag_eval.cli.printing import print_result, print_table
from krag_eval.cli.shell import warnings_as
from krag_eval.matching.names import MATCHER_NAMES

__all__ = ["demo"]


_OPENING = """\
A library in English and a bicycle rental in Korean: for every question, what a retriever should
have found and what it found. A document counts as found when its text is equal (--matcher text).
"""

_MATCHERS = {
    "text": "counts a document whose text equals the ground truth",
    "contains": "counts a document that has the ground truth in it, as a longer chunk does",
    "coverage": "counts a document that covers most of the ground truth, as a cut chunk may",
}

_CLOSING = """
Where to go next

  1. Write one JSON object per line into a file, say results.jsonl:
     {"question": "When?", "actual": ["At nine."], "predicted": ["At ten.", "At nine."]}
  2. Evaluate it, with a chart:
     krag-eval evaluate results.jsonl --matcher contains -k 1 -k 5 --plot chart.png
  3. Read what every number means: docs/metrics.md. All options: krag-eval evaluate --help"""


@click.command(short_help="Evaluate the data set that ships with the package.")
def demo() -> None:
    """Evaluate the small English and Korean data set that ships with the package."""
    from krag_eval.datasets import demo_dataset

    dataset = demo_dataset()
    with warnings_as("note"):
        result = dataset.evaluator(matcher="text").evaluate(k=[1, 3, 5])
        matched = {
            name: dataset.evaluator(matcher=name).evaluate(k=5).to_dict()
            for name in _MATCHERS
            if name in MATCHER_NAMES
        }
    click.echo(_OPENING)
    print_result(result, dataset.source)
    shown = ("macro_recall@5", "mrr@5", "ndcg@5")
    rows = {name: [metrics[key] for key in shown] for name, metrics in matched.items()}
    click.echo("\nThe same retrieved lists, matched in other ways:\n")
    print_table("matcher", shown, rows)
    for name in matched:
        click.echo(f"  {name:<9} {_MATCHERS[name]}")
    click.echo(_CLOSING)
