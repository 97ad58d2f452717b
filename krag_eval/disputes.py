"""Why two tools disagree: each metric under each preset, and the fields that make the difference.

This room knows conventions and averages by name. It must not know how an average is computed; it
is given a function that does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
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

    A field is responsible if changing it alone changes the default number, or if undoing it alone
    changes the preset's.
    """
    default = Conventions()
    if _same(averages(preset)[key], averages(default)[key]):
        return []
    responsible = []
    for field in fields(Conventions):
        name, value = field.name, getattr(preset, field.name)
        if value == getattr(default, name):
            continue
        alone = averages(replace(default, **{name: value}))[key]
        undone = averages(replace(preset, **{name: getattr(default, name)}))[key]
        if not (_same(alone, averages(default)[key]) and _same(undone, averages(preset)[key])):
            responsible.append(f"{name}={value}")
    return responsible


def _same(first: float, second: float) -> bool:
    # The same number reached by another way may differ in its last digits.
    return math.isclose(first, second, rel_tol=1e-12) or (first != first and second != second)
