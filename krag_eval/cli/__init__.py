"""The shell command: files in, a table out, and the same numbers as from Python.

A command imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import click

from krag_eval import __version__
from krag_eval.cli import evaluate, explain, options, shell
from krag_eval.cli.help import HelpOption, Option
from krag_eval.comparison import command as compare
from krag_eval.core.language import N_
from krag_eval.formats import command as trec
from krag_eval.labelling import command as labels
from krag_eval.sweeping import command as sweep

__all__ = ["main"]

main = shell.Shell(
    "krag-eval",
    help=N_("Measure how good retrieval is in a RAG system."),
    epilog=N_("Try it: krag-eval demo. What a command takes: krag-eval COMMAND --help."),
    sections={
        N_("Measure"): (evaluate.evaluate, trec.trec, evaluate.demo),
        N_("Understand"): (
            explain.misses,
            explain.explain,
            explain.diagnose,
            explain.report,
            explain.history,
        ),
        N_("Decide"): (
            compare.compare,
            compare.gate,
            compare.plan,
            labels.calibrate,
            sweep.sweep,
        ),
        N_("Data"): (evaluate.audit, labels.label, labels.agree, evaluate.reanchor,
                     evaluate.schema),
    },
)  # fmt: skip
click.version_option(
    __version__, prog_name="krag-eval", cls=Option, help=N_("Show the version and exit.")
)(main)
for command in (main, *main.commands.values()):
    options.language_option(command)
    click.help_option("-h", "--help", cls=HelpOption, help=N_("Show this message and exit."))(
        command
    )
