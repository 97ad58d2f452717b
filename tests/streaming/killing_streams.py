"""Kill streaming runs at random moments, resume each, and compare with an uninterrupted one.

    python tests/streaming/killing_streams.py 50

Every process is killed with SIGKILL, again and again on the same output until one survives. Then
every query must stand in the rows once, every value and the summary must equal those of a run
nobody killed, and nothing but the output may be left.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from pandas.testing import assert_frame_equal
from stream_samples import queries, write_jsonl

from krag_eval import EvaluationResult, evaluate_file

N_QUERIES = 300
CUTOFFS = [1, 3]
OPTIONS = {"matcher": "coverage", "grade_key": "grade"}

RUN = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parents[2])!r}]
from krag_eval import evaluate_file
from krag_eval.streaming.files import RunState

class Telling(RunState):
    def __init__(self, *arguments, **options):
        print("begun", flush=True)
        super().__init__(*arguments, **options)

sys.modules["krag_eval.streaming.files"].RunState = Telling
path, output, saved = sys.argv[1:]
evaluate_file(path, {CUTOFFS}, per_query=output, chunk_size=10, **{OPTIONS}).to_json(saved)
"""


def run(path: Path, output: Path, saved: Path, after: float | None) -> tuple[bool, float]:
    """Run in a process; kill it so long after it began. Return whether, and how long it ran."""
    command = [sys.executable, "-c", RUN, str(path), str(output), str(saved)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        begun = time.monotonic()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
    assert process.returncode in (0, -9), process.returncode
    return process.returncode != 0, time.monotonic() - begun


def check(output: Path, saved: Path, expected: EvaluationResult, rows: pd.DataFrame) -> None:
    """Compare what the last run left with what an uninterrupted one gives."""
    is_parquet = output.suffix == ".parquet"
    found = (pd.read_parquet if is_parquet else pd.read_csv)(output)
    assert found["position"].tolist() == list(range(N_QUERIES)), "a query is missing or twice"
    if is_parquet:
        assert_frame_equal(found, rows)
    result = EvaluationResult.from_json(saved)
    assert result.summary == expected.summary
    assert result.to_dict() == expected.to_dict()
    for k in CUTOFFS:
        assert_frame_equal(result.per_query(k), expected.per_query(k))
    assert sorted(os.listdir(output.parent)) == sorted([output.name, saved.name])


def main(times: int, seed: int | None = None) -> int:
    """Kill runs until so many kills happened; return that number."""
    random_ = random.Random(seed)
    kills = survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_jsonl(folder / "queries.jsonl.gz", queries(N_QUERIES))
        whole, saved = folder / "whole.parquet", folder / "whole.json"
        expected = evaluate_file(path, CUTOFFS, per_query=whole, chunk_size=37, **OPTIONS)
        rows = pd.read_parquet(whole)
        # The second run finds everything in the disk's cache.
        _, seconds = min(run(path, folder / "timed.parquet", saved, None) for _ in range(2))
        while kills < times:
            output = folder / f"out{survivors}" / f"rows.{random_.choice(['parquet', 'csv'])}"
            output.parent.mkdir()
            saved = output.with_name("result.json")
            # Killed up to five times, at its beginning, in the middle or at the very end.
            for _ in range(random_.randint(1, 5)):
                if kills == times or not run(path, output, saved, random_.uniform(0, seconds))[0]:
                    break
                kills += 1
            run(path, output, saved, None)
            check(output, saved, expected, rows)
            survivors += 1
    print(f"{kills} kills; {survivors} runs resumed to the end, each as if never killed.")
    return kills


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
