"""The rows of the cluster tests, for engines that are too heavy for the daily suite."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
