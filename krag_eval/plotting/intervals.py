"""Reading a table of confidence intervals that goes with a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bounds_of"]


def bounds_of(intervals: pd.DataFrame | None, average: str) -> tuple[float, float] | None:
    """Return the interval of one average, such as ``"ndcg@10"``; ``None`` if it is undefined.

    Raises:
        ValueError: If the table has no such row, or is no table of intervals.
    """
    if intervals is None:
        return None
    if not {"low", "high"} <= set(getattr(intervals, "columns", ())):
        raise ValueError(
            "intervals must be what result.confidence_intervals() returned, with the columns "
            f"'low' and 'high', got {type(intervals).__name__}."
        )
    if average not in intervals.index:
        raise ValueError(
            f"intervals have no row {average!r}; compute them from the same result: "
            "result.confidence_intervals()."
        )
    low, high = (float(intervals[bound][average]) for bound in ("low", "high"))
    return None if math.isnan(low) or math.isnan(high) else (low, high)
