"""Why two tools disagree: each metric under each preset, and the fields that make the difference.

This room knows conventions and averages by name. It must not know how an average is computed; it
is given a function that does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from krag_eval.conventions import Conventions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["conventions_table", "responsible_fields"]

#: Returns every average under given conventions, by key.
Averages = Callable[[Conventions], "dict[str, float]"]


def conventions_table(averages: Averages, own: Conventions) -> pd.DataFrame:
    """Return every average under every preset, and why it differs from the default.

    Args:
        averages: Computes the averages under given conventions.
        own: The conventions in use; a column ``"yours"`` of its own unless they are a preset.

    Returns:
        One row per key; one column per preset, then one column ``"<preset> differs by"`` each that
        names the responsible fields, empty where the number is the same.
    """
    import pandas as pd

    presets = Conventions.presets()
    if own not in presets.values():
        presets["yours"] = own
    memo: dict[Conventions, dict[str, float]] = {}

    def known(conventions: Conventions) -> dict[str, float]:
        if conventions not in memo:
            memo[conventions] = averages(conventions)
        return memo[conventions]

    table = pd.DataFrame({name: known(preset) for name, preset in presets.items()})
    for name, preset in presets.items():
        if name != "default":
            table[f"{name} differs by"] = [
                ", ".join(responsible_fields(known, preset, key)) for key in table.index
            ]
    return table.rename_axis("metric")


def responsible_fields(averages: Averages, preset: Conventions, key: str) -> list[str]:
    """Name the fields that make one average differ from its default, as ``field=value``.

    A field is responsible if undoing it alone changes the preset's number; where no field does so
    alone, if changing it alone changes the default one.
    """
    default = Conventions()
    if _same(averages(preset)[key], averages(default)[key]):
        return []
    changed = preset.changed()
    undone = {name: replace(preset, **{name: getattr(default, name)}) for name in changed}
    responsible = [
        name for name in changed if not _same(averages(undone[name])[key], averages(preset)[key])
    ]
    if not responsible:
        alone = {
            name: replace(default, **{name: value})  # type: ignore[arg-type]
            for name, value in changed.items()
        }
        responsible = [
            name
            for name in changed
            if not _same(averages(alone[name])[key], averages(default)[key])
        ]
    return [f"{name}={changed[name]}" for name in responsible]


def _same(first: float, second: float) -> bool:
    # The same number reached by another way may differ in its last digits.
    return math.isclose(first, second, rel_tol=1e-12) or (first != first and second != second)
