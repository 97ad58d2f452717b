r"""Formulas as MathML, written when the site is built: no script, no font, no network.

Browsers draw MathML by themselves, in the text's own colour, in print as on a telephone.

>>> convert(r"\frac{a}{b}", "inline")
'<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow><mfrac>...'
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert as to_mathml

__all__ = ["convert", "setup"]


def convert(formula: str, display: str) -> str:
    """Return the MathML of a TeX formula; ``display`` is ``"inline"`` or ``"block"``."""
    return to_mathml(" ".join(formula.split()), display=display)


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    translator.body.append(convert(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write formulas that stand by themselves, one to a paragraph of the source."""
    for part in filter(str.strip, node.astext().split("\n\n")):
        translator.body.append(f'<div class="formula">{convert(part, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Offer the renderer to Sphinx by the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
