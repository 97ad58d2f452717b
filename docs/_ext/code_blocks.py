"""Blocks of code: shown without the empty line that ends a doctest, copied without its outputs.

The button is sphinx-copybutton's. It takes the lines behind a prompt where there is one, and the
whole block where there is none; without JavaScript there is no button, and nothing else is missing.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes

__all__ = ["PROMPT", "setup", "trim"]

#: What a line begins with if it is to be copied, as JavaScript and Python read it.
PROMPT = r">>> |\.\.\. "


def trim(app: Any, doctree: nodes.document) -> None:
    """Take away the empty lines at the end of every block of code."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")
        # Sphinx colours a block whose source is its text.
        block.rawsource = text
        block.children = [nodes.Text(text)]


def configure(app: Any, config: Any) -> None:
    """Say what is copied."""
    config.copybutton_prompt_text = PROMPT
    config.copybutton_prompt_is_regexp = True
    config.copybutton_copy_empty_lines = False
    config.copybutton_exclude = ".linenos, .go"


def setup(app: Any) -> dict[str, bool]:
    """Set up the buttons, and run for every page once it is read."""
    app.connect("config-inited", configure, priority=400)  # sphinx-copybutton reads it at 500
    app.setup_extension("sphinx_copybutton")
    app.connect("doctree-read", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
