"""The shell's words: messages made for Python, said on one line as one types in a shell."""

from __future__ import annotations

import re

__all__ = ["in_shell_words", "one_line"]

# How a Python message names an option: matcher="contains" is --matcher contains here.
_ASSIGNMENT = re.compile(
    r"\b(matcher|conventions|no_ground_truth|question_field|actual_field|predicted_field"
    r'|missing|scores)="([^"]*)"'
)
# How a Python message begins that is about an argument named otherwise here.
_BEGINNINGS = {
    "results: ": "",
    "metric and max_drop are": "--metric and --max-drop are",
    "metric: ": "--metric: ",
    "metric must": "--metric must",
    "max_drop must": "--max-drop must",
    "floors: ": "--fail-under: ",
    "n_jobs must": "--jobs must",
    "a floor": "--fail-under: a floor",
    "per_query: ": "--per-query: ",
}
# What a Python message says to do, and how it is done here.
_REMEDIES = {
    "None (or 'all') for all": "'all' for all",
    "name it in evaluate(k=[…])": "name it by -k when evaluating",
    "evaluate with per_query=… to write": "evaluate again with --per-query OUT to write",
    'averaging_method="micro"': "--averaging micro",
    'averaging_method="both"': "--averaging both",
    "(resume=False)": "(--no-resume)",
    "pass resume=False to start anew": "give --no-resume to start anew",
    "give floors, or a baseline and a metric": "give --fail-under, or --baseline and --metric",
}


def in_shell_words(message: str) -> str:
    """Name options as they are typed in a shell.

    >>> in_shell_words('Try matcher="contains".')
    'Try --matcher contains.'
    >>> in_shell_words("max_drop must be a number of at least 0, got -1.")
    '--max-drop must be a number of at least 0, got -1.'
    """
    worded = _ASSIGNMENT.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    for beginning, ours in _BEGINNINGS.items():
        if worded.startswith(beginning):
            worded = ours + worded.removeprefix(beginning)
            break
    for remedy, ours in _REMEDIES.items():
        worded = worded.replace(remedy, ours)
    return worded


def one_line(text: str, longest: int = 1000) -> str:
    r"""Keep a message on one line of harmless characters, its beginning and end at least.

    >>> one_line("a name\nwith a line end")
    'a name with a line end'
    """
    if len(text) > longest:
        text = f"{text[: longest // 2]} ... {text[-longest // 2 :]}"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in " ".join(text.split())
    )
