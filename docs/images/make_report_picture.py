"""Draw docs/images/report.png: the top of a report, as a browser shows it.

    python docs/images/make_report_picture.py

The report is of the data that ship with the package, by coverage. It takes Chromium, with no
network; fonts and Chromium's version decide about single pixels.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from krag_eval import KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.datasets import demo_dataset

HERE = Path(__file__).parent
#: Width and height in CSS pixels: what a report says before its tables.
SIZE = (1080, 560)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def main() -> None:
    """Write the report into a folder that is thrown away, and take its picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("The picture takes Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        write_report(page)
        command = [
            chromium,
            *FLAGS,
            f"--user-data-dir={folder}/profile",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            f"--screenshot={HERE / 'report.png'}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


def write_report(path: Path) -> None:
    """Evaluate the shipped data; the date is fixed, so that the picture stays the same."""
    warnings.simplefilter("ignore", KragEvalWarning)  # the data are few, on purpose
    data = demo_dataset()
    evaluator = OfflineRetrievalEvaluator(
        data.actual, data.predicted, matcher="coverage", queries=data.queries
    )
    evaluator.evaluate(k=[1, 3, 5]).report(path, title="Library and bicycles", date="2026-01-05")


if __name__ == "__main__":
    main()
