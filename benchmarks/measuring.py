"""What every benchmark shares: timing in turns, one row per claim, and the table of them.

A figure is a ratio taken within one process and one run, because times of different runs and
machines cannot be compared. The two sides take turns, so that what slows the machine for a while
slows both, and of several rounds the median counts.
"""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any, Literal

__all__ = [
    "Goal",
    "Rounds",
    "Row",
    "faster",
    "in_turns",
    "is_installed",
    "machine",
    "spelled_seconds",
    "table",
    "versions",
]


@dataclass(frozen=True)
class Goal:
    """What a figure must be: at least so much, or at most.

    >>> str(Goal("at least", 6.0))
    '≥ 6'
    """

    sense: Literal["at least", "at most"]
    value: float

    def is_met(self, figure: float) -> bool:
        """Tell whether a figure is as it must be."""
        return figure >= self.value if self.sense == "at least" else figure <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.sense == 'at least' else '≤'} {self.value:,g}"


@dataclass(frozen=True)
class Row:
    """One claim of the table.

    Attributes:
        name: What was measured, and against what.
        figure: The number the goal is about; ``None`` if it could not be measured, see ``note``.
        unit: What follows the figure: ``×`` for a ratio, else a unit.
        ours: What krag_eval took, spelled with its unit.
        theirs: What the other side took.
        goal: What the figure must be, if anything.
        note: What else a reader must know, such as "not installed".
    """

    name: str
    figure: float | None
    unit: str = "×"
    ours: str = ""
    theirs: str = ""
    goal: Goal | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; ``None`` without a goal, or without a figure."""
        if self.goal is None or self.figure is None:
            return None
        return self.goal.is_met(self.figure)

    @classmethod
    def missing(cls, name: str, note: str, goal: Goal | None = None) -> Row:
        """Return the row of something that cannot be measured here."""
        return cls(name, None, goal=goal, note=note)


@dataclass(frozen=True)
class Rounds:
    """The seconds that each job took in each round, and what it returned last."""

    seconds: Mapping[str, list[float]]
    results: Mapping[str, Any]

    def median(self, job: str) -> float:
        """Return the median seconds of one job."""
        return median(self.seconds[job])

    def ratio(self, numerator: str, denominator: str) -> float:
        """Return the median, over the rounds, of one job's seconds by another's."""
        pairs = zip(self.seconds[numerator], self.seconds[denominator], strict=True)
        return median(above / below for above, below in pairs)


def in_turns(
    jobs: Mapping[str, Callable[[], Any]],
    rounds: int = 5,
    *,
    clock: Callable[[], float] = time.process_time,
    repeats: Mapping[str, int] | None = None,
) -> Rounds:
    """Run every job once per round, one after the other, and take the time of each.

    Args:
        jobs: What to run, by name.
        rounds: How often.
        clock: CPU time of this process (all threads) unless given; ``time.perf_counter`` for wall
            time, where other processes or several cores do the work.
        repeats: How often a job runs within one round, where it is too short to time alone; the
            median of the repeats stands for the round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, job in jobs.items():
            times = []
            for _ in range((repeats or {}).get(name, 1)):
                results.pop(name, None)  # what is freed, nobody's time must include
                gc.collect()
                start = clock()
                results[name] = job()
                times.append(clock() - start)
            seconds[name].append(median(times))
    return Rounds(seconds, results)


def faster(
    name: str,
    rounds: Rounds,
    ours: str,
    theirs: str,
    *,
    at_least: float | None = None,
    note: str = "",
) -> Row:
    """Return the row that says how many times as long the other side takes."""
    return Row(
        name,
        rounds.ratio(theirs, ours),
        ours=spelled_seconds(rounds.median(ours)),
        theirs=spelled_seconds(rounds.median(theirs)),
        goal=None if at_least is None else Goal("at least", at_least),
        note=note,
    )


def spelled_seconds(seconds: float) -> str:
    """Spell a duration with three digits.

    >>> spelled_seconds(0.01234), spelled_seconds(12.3456), spelled_seconds(2e-6)
    ('12.3 ms', '12.3 s', '2 µs')
    """
    if seconds >= 1000:
        return f"{seconds:,.0f} s"
    unit, size = ("s", 1.0) if seconds >= 1 else ("ms", 1e-3) if seconds >= 1e-3 else ("µs", 1e-6)
    return f"{seconds / size:.3g} {unit}"


def is_installed(distribution: str) -> bool:
    """Tell whether a distribution (its name on PyPI) is installed."""
    return versions([distribution])[distribution] is not None


def versions(distributions: Iterable[str]) -> dict[str, str | None]:
    """Return the version of each distribution, ``None`` where it is not installed."""
    found: dict[str, str | None] = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def machine() -> str:
    """Describe what everything ran on."""
    return (
        f"{platform.python_implementation()} {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    )


_HEADINGS = ("what", "krag_eval", "other", "figure", "goal", "met", "note")


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table whose columns line up.

    >>> print(table([Row("ids", 6.5, ours="1 s", theirs="6.5 s", goal=Goal("at least", 6))]))
    | what | krag_eval | other | figure | goal | met | note |
    |------|-----------|-------|--------|------|-----|------|
    | ids  | 1 s       | 6.5 s | 6.50×  | ≥ 6  | yes |      |
    """
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in (_HEADINGS, *cells)
    ]
    rule = "|".join("-" * (width + 2) for width in widths)
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def _cells(row: Row) -> tuple[str, ...]:
    figure = "–" if row.figure is None else _spelled_figure(row.figure, row.unit)
    met = {None: "", True: "yes", False: "**no**"}[row.met]
    return (row.name, row.ours, row.theirs, figure, str(row.goal or ""), met, row.note)


def _spelled_figure(figure: float, unit: str) -> str:
    digits = (
        f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}"
    )
    return digits + (unit if unit in ("×", "%") else f" {unit}")
