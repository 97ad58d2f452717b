"""The data frame of :meth:`EvaluationResult.misses`, which is shown by a few of its columns."""

from __future__ import annotations

import html

import pandas as pd

from krag_eval.core.language import _

# The first five there are.
_SHOWN = ("status", "missed", "similarity", "rank", "recall", "ground_truth", "covered", "ndcg")


class Misses(pd.DataFrame):
    """Rows that lost something: a data frame that shows the five columns one looks at first.

    It holds all of them, and what is made of it is a plain data frame that shows them all:
    ``misses.head()``, ``misses[:]``, ``misses.to_string()``.
    """

    def _in_short(self) -> tuple[pd.DataFrame, str]:
        """Return what is shown, and what is said of the rest."""
        named = [f"missed:{name}" if f"missed:{name}" in self else name for name in _SHOWN]
        shown = [name for name in named if name in self][:5]
        rest = ", ".join(str(name) for name in self.columns if name not in shown)
        told = _("More columns, shown by [:]: {}").format(rest)
        return self[shown], told if rest else ""

    def __repr__(self) -> str:
        shown, told = self._in_short()
        rows = shown.to_string(max_rows=pd.get_option("display.max_rows"), max_colwidth=40)
        return f"{rows}\n\n{told}".rstrip()

    def _repr_html_(self) -> str:
        shown, told = self._in_short()
        rows = shown.to_html(max_rows=pd.get_option("display.max_rows"), notebook=True)
        return f"{rows}<p>{html.escape(told)}</p>"
