"""The shell command: files in, a table out, and the same numbers as from Python.

This room knows options, printing and exit codes. It must not know formulas. What a command needs
is imported when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import click

from krag_eval import __version__
from krag_eval.cli import compare, evaluate, trec
from krag_eval.cli import compare as gate
from krag_eval.cli import evaluate as demo
from krag_eval.cli.shell import Shell

__all__ = ["main"]


@click.group("krag-eval", cls=Shell, invoke_without_command=True)
@click.version_option(__version__, prog_name="krag-eval")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure how good retrieval is in a RAG system."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


main.add_command(evaluate.evaluate)
main.add_command(compare.compare)
main.add_command(gate.gate)
main.add_command(trec.trec)
main.add_command(demo.demo)
