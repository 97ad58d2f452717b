"""The rows of the cluster tests, for engines that are too heavy for the daily suite."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "distributed"))

from cluster_samples import SEEN, check_budgets, check_seen, local, sample, with_seen, within

__all__ = ["SEEN", "check_budgets", "check_seen", "local", "sample", "with_seen", "within"]
