"""The shell's words: messages made for Python, said on one line as one types in a shell."""

from __future__ import annotations

import re

__all__ = ["in_shell_words", "one_line"]

# How a Python message names an option: matcher="contains" is --matcher contains here.
_ASSIGNMENT = re.compile(
    r"\b(matcher|conventions|no_ground_truth|question_field|actual_field|predicted_field"
    r'|missing|scores)="([^"]*)"'
)


def in_shell_words(message: str) -> str:
    """Name options as they are typed in a shell.

    >>> in_shell_words('Try matcher="contains".')
    'Try --matcher contains.'
    """
    worded = _ASSIGNMENT.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    return worded.replace("None (or 'all') for all", "'all' for all")


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
