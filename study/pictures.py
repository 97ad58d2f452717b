"""The picture of the study: precision and recall by kind of truth.

SVG, whose words are words and not outlines, so that no font of this machine decides how they look.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.page import KINDS

INK, FAINT, BLUE = "#1f2933", "#9aa5b1", "#1f5fa8"

# The order of the panels: all of the page but one.
_SHOWN = {kind: names for kind, names in KINDS.items() if kind[0] != "apart"}
WORDS = {
    "en": {"precision": "precision", "recall": "recall"},
    "ko": {"precision": "정밀도", "recall": "재현율"},
}


def pictures(found: Mapping[str, Any], shown: Sequence[str] | None = None) -> dict[str, bytes]:
    """Return the pictures by name.

    Args:
        found: The numbers about decisions.
        shown: The systems, from top to bottom; all if not given.
    """
    names = [*found["systems"]] if shown is None else [*shown]
    return {
        f"kinds{'' if language == 'en' else '_ko'}.svg": as_svg(by_kind(found, names, language))
        for language in WORDS
    }


def by_kind(found: Mapping[str, Any], names: Sequence[str], language: str) -> Figure:
    """Draw one panel per kind of truth, with a line per system from precision to recall."""
    records = {
        (one["kind"], one["source"], one["language"], one["system"]): one
        for one in found["decisions"]
        if one["how"] == "main" and one["part"] == "held"
    }
    figure = Figure(figsize=(12, 1.3 + 0.3 * len(names)), layout="constrained")
    axes = figure.subplots(1, len(_SHOWN), sharey=True)
    for ax, (kind, titles) in zip(axes, _SHOWN.items(), strict=True):
        _look(ax, titles[language == "ko"].replace(", ", "\n"), len(names))
        for row, name in enumerate(names):
            one = records.get((*kind, name))
            if one is None:
                ax.plot([0.5], [row], marker="_", color=FAINT)
                continue
            precision, recall = one["precision"][0], one["recall"][0]
            if precision is not None:
                ax.plot([precision, recall], [row, row], color=BLUE, linewidth=1.2, alpha=0.5)
                ax.plot([precision], [row], "o", color=BLUE, markersize=6)
            ax.plot([recall], [row], "o", markerfacecolor="white", color=BLUE, markersize=6)
    axes[0].set_yticks(range(len(names)), names)
    words = WORDS[language]
    handles = [
        axes[0].plot([], [], "o", color=BLUE, label=words["precision"])[0],
        axes[0].plot([], [], "o", color=BLUE, markerfacecolor="white", label=words["recall"])[0],
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)
    return figure


def _look(ax: Axes, title: str, n: int) -> None:
    ax.set_title(title, fontsize=9, color=INK)
    ax.set_xlim(-0.06, 1.06)
    ax.set_ylim(n - 0.5, -0.5)
    ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"], fontsize=8)
    ax.tick_params(length=0, labelsize=9, colors=INK)
    ax.grid(axis="x", color=FAINT, linewidth=0.4)
    ax.grid(axis="y", color=FAINT, linewidth=0.3, alpha=0.5)
    for side in ax.spines.values():
        side.set_visible(False)


def as_svg(figure: Figure) -> bytes:
    """Return a figure as SVG, the same bytes each time."""
    file = io.BytesIO()
    options = {"svg.hashsalt": "study", "svg.fonttype": "none"}
    with mpl.rc_context(options), warnings.catch_warnings():
        # The letters are drawn by who shows the picture.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()
