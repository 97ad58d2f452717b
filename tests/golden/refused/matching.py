"""Matchers made or asked wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from krag_eval import CoverageMatcher, FuzzyMatcher

CALLS: dict[str, Callable[[], Any]] = {
    "a threshold above 1": lambda: CoverageMatcher(threshold=1.5),
    "a fuzzy threshold of 0": lambda: FuzzyMatcher(threshold=0),
}
