"""How the guard's memory grows with the texts: the peak beyond that of ``guard="off"``.

    python -m benchmarks.guard_memory [--quick]

Two texts that differ at both ends and are the same, or nearly the same, in the middle are the worst
there is to align: every token may lie beside every other. Each size doubles the one before. A table
of all pairs of tokens would take four times the memory then; blocks of bounded size take the same.
Each pair of texts is compared in processes of its own, once with the guard and once without it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.measuring import Goal, Row, machine, table

#: Peak beyond that of the same comparison without the guard, in megabytes.
MOST = 64.0
TEXTS = {
    "one Korean word": "일이삼 ",
    "a negation": "not word ",
    "numbers": "12 of 34 ",
    "mixed": "Section 5 은 적용하지 않는다 ",
}

COMPARED = """
import resource, sys
from krag_eval import CoverageMatcher
unit, times, guard = sys.argv[1], int(sys.argv[2]), sys.argv[3]
middle = unit * times
one, other = f"처음은 first {middle} 끝은 here", f"시작은 begin {middle} 마지막은 there"
CoverageMatcher(guard=guard).similarity(one, other)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows(quick: bool) -> list[Row]:
    sizes = [2_500, 5_000] if quick else [25_000, 50_000, 100_000]
    return [_row(name, unit, sizes) for name, unit in TEXTS.items()]


def _row(name: str, unit: str, sizes: list[int]) -> Row:
    beyond = [_peak(unit, size, "aligned") - _peak(unit, size, "off") for size in sizes]
    grown = ", ".join(f"{n:,}: {mb:,.0f} MB" for n, mb in zip(sizes, beyond, strict=True))
    longest = len(unit.encode()) * sizes[-1] * 2 / 1e6
    return Row(
        f"guard's memory beyond guard=off, {name} {sizes[-1]:,} times",
        max(beyond),
        unit=" MB",
        ours=grown,
        theirs=f"texts of {longest:,.1f} MB",
        goal=Goal("at most", MOST),
    )


def _peak(unit: str, times: int, guard: str) -> float:
    """Return the most memory, in megabytes, that a process took for one comparison."""
    command = [sys.executable, "-c", COMPARED, unit, str(times), guard]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.guard_memory", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="shorter texts")
    arguments = parser.parse_args()
    print(machine())
    print(table(rows(arguments.quick)))


if __name__ == "__main__":
    main()
