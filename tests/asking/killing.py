"""Kill checkpointed runs at random moments, resume each, and compare with an uninterrupted one.

    python tests/asking/killing.py 50

Every process is killed with SIGKILL, again and again on the same file until one survives. Then
every query must be in the file once, and the result must equal that of an uninterrupted run.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
SHARED = PACKAGE / "tests" / "shared"
N_QUERIES = 200
SECONDS = 0.01  # per question, so that a run takes a while

RUN = f"""
import sys
sys.path[:0] = [{str(SHARED)!r}, {str(PACKAGE)!r}]
from langchain_core.callbacks import BaseCallbackHandler
from retriever_samples import Numbered, rows
from krag_eval import evaluate_retriever

class Telling(BaseCallbackHandler):
    def on_retriever_start(self, *arguments, **details):
        print("asking", flush=True)

evaluate_retriever(
    Numbered(seconds={SECONDS}, repeats=3), rows({N_QUERIES}), [1, 3], checkpoint=sys.argv[1],
    config={{"callbacks": [Telling()]}},
)
"""


def killed(path: Path, after: float) -> bool:
    """Start a run and kill it so long after its first question; tell whether it was killed."""
    with subprocess.Popen([sys.executable, "-c", RUN, str(path)], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        if run.stdout.readline():
            time.sleep(after)
            run.kill()
    assert run.returncode in (0, -9), run.returncode
    return run.returncode != 0


def check(path: Path) -> None:
    """Every query once, and the result of a run that nobody killed."""
    from retriever_samples import Numbered, rows

    from krag_eval import evaluate_retriever

    retriever = Numbered(seconds=SECONDS, repeats=3)
    resumed = evaluate_retriever(retriever, rows(N_QUERIES), [1, 3], checkpoint=path)
    header, *lines = path.read_text("utf-8").splitlines()
    assert json.loads(header)["questions"] == N_QUERIES
    assert sorted(json.loads(line)["query"] for line in lines) == list(range(N_QUERIES))
    assert resumed == evaluate_retriever(Numbered(repeats=3), rows(N_QUERIES), [1, 3])


def kill_often(kills: int, seed: int) -> int:
    """Kill so many runs; return how many files that took."""
    moments, files = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        while kills:
            path, files = Path(folder) / f"{files}.jsonl", files + 1
            while kills and killed(path, moments.uniform(0, 0.12)):
                kills -= 1
            check(path)
    return files


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    sys.path[:0] = [str(SHARED), str(PACKAGE)]
    n_files = kill_often(n, seed=0)
    print(f"{n} kills on {n_files} checkpoints: every query once, every result as if not killed.")
