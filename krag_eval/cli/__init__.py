"""The shell command: files in, a table out, and the same numbers as from Python.

A command imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import click

from krag_eval import __version__
from krag_eval.cli import calibrate, compare, evaluate, explain, sweep, trec
from krag_eval.cli.options import LANGUAGE, language_option
from krag_eval.cli.shell import Shell

__all__ = ["main"]

main = Shell(
    "krag-eval",
    help="Measure how good retrieval is in a RAG system.",
    epilog="Try it: krag-eval demo. What a command takes: krag-eval COMMAND --help.",
    context_settings={"help_option_names": ["-h", "--help"]},
    sections={
        "Measure": (evaluate.evaluate, trec.trec, evaluate.demo),
        "Understand": (
            explain.misses,
            explain.explain,
            explain.diagnose,
            explain.report,
            explain.history,
        ),
        "Decide": (compare.compare, compare.gate, compare.plan, calibrate.calibrate, sweep.sweep),
        "Data": (evaluate.audit,),
    },
)
click.version_option(__version__, prog_name="krag-eval")(main)
click.option("--lang", **LANGUAGE)(main)
for command in main.commands.values():
    language_option(command)
