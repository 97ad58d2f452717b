"""The shell command: files in, a table out, and the same numbers as from Python.

A command imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import click

from krag_eval import __version__
from krag_eval.cli import compare, evaluate, explain, trec
from krag_eval.cli.shell import Shell

__all__ = ["main"]


@click.group("krag-eval", cls=Shell, invoke_without_command=True)
@click.version_option(__version__, prog_name="krag-eval")
@click.pass_context
def main(context: click.Context) -> None:
    """Measure how good retrieval is in a RAG system."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    evaluate.evaluate,
    explain.misses,
    explain.explain,
    explain.diagnose,
    explain.report,
    evaluate.audit,
    compare.compare,
    compare.gate,
    trec.trec,
    evaluate.demo,
):
    main.add_command(command)
