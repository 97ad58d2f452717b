"""The program: every command there is, of the shell itself and of the rooms."""

from __future__ import annotations

import click

from krag_eval import __version__
from krag_eval.cli import evaluate, explain, options, shell
from krag_eval.cli.help import HelpOption, Option
from krag_eval.core import N_
from krag_eval.core.hooks import our_hooks

__all__ = ["main"]

#: What the help lists below which title, in this order; other rooms' commands come behind.
SECTIONS = {
    N_("Measure"): ["evaluate", "trec", "demo"],
    N_("Understand"): ["misses", "explain", "diagnose", "report", "history"],
    N_("Decide"): ["compare", "gate", "plan", "calibrate", "sweep"],
    N_("Data"): ["audit", "label", "agree", "reanchor", "schema"],
}


def _commands() -> dict[str, click.Command]:
    """Return the commands of the frame and of the rooms, by name."""
    own = (evaluate.evaluate, evaluate.demo, evaluate.schema, explain.misses, explain.explain,
           explain.report)  # fmt: skip
    rooms = {name: hook.load() for name, hook in our_hooks("krag_eval.commands").items()}
    return {str(command.name): command for command in own} | rooms


main = shell.Shell(
    "krag-eval",
    _commands(),
    help=N_("Measure how good retrieval is in a RAG system."),
    epilog=N_("Try it: krag-eval demo. What a command takes: krag-eval COMMAND --help."),
    sections=SECTIONS,
)
click.version_option(
    __version__, prog_name="krag-eval", cls=Option, help=N_("Show the version and exit.")
)(main)
for command in (main, *main.commands.values()):
    options.language_option(command)
    click.help_option("-h", "--help", cls=HelpOption, help=N_("Show this message and exit."))(
        command
    )
