"""How evaluating on Spark, Ray and Dask scales on this machine, against one process.

Rows are written to Parquet first; each engine reads them, evaluates them and merges the sums. The
table says rows per second for each engine and number of cores, start-up apart, and that all digits
are equal. The last line estimates 100 million queries from the fastest measured rate.

    python benchmarks/clusters.py --queries 200000 --engines dask spark ray
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WORDS = [f"word{number}" for number in range(5000)]


def write(folder: Path, n_queries: int, files: int) -> None:
    """Write queries with 2 true passages of 25 words and 10 retrieved chunks of 80."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = random.Random(1)
    schema = pa.schema(
        [("question", pa.string()), ("actual", pa.list_(pa.string())),
         ("predicted", pa.list_(pa.string()))]
    )  # fmt: skip
    for file in range(files):
        rows = [one_row(rng, f"{file}-{number}") for number in range(n_queries // files)]
        table = pa.Table.from_pylist(rows, schema=schema)
        parquet.write_table(table, folder / f"part-{file:04}.parquet")


def one_row(rng: random.Random, name: str) -> dict[str, Any]:
    passages = [rng.choices(WORDS, k=25) for _ in range(2)]
    chunks = [rng.choices(WORDS, k=80) for _ in range(10)]
    for passage in passages:
        if rng.random() < 0.7:
            chunks[rng.randrange(10)][20:45] = passage
    texts = [[" ".join(words) for words in side] for side in (passages, chunks)]
    return {"question": name, "actual": texts[0], "predicted": texts[1]}


def one_process(folder: Path, matcher: str) -> Any:
    """Evaluate file by file in this process."""
    from pyarrow import parquet

    from krag_eval.evaluator import PartitionPlan

    plan = PartitionPlan.of(matcher=matcher)
    partials = []
    for file in sorted(folder.iterdir()):
        columns = parquet.read_table(file).to_pydict()
        part = plan.evaluate(columns["actual"], columns["predicted"], columns["question"])
        partials.append(part.partial)
    return plan.result(partials)


@contextmanager
def dask_engine(folder: Path, matcher: str, cores: int) -> Iterator[Callable[[], Any]]:
    """Yield what evaluates on Dask: processes, a file at a time."""
    import dask
    from dask import bag, delayed

    from krag_eval.distributed import evaluate_dask

    def rows(file: Path) -> list[dict[str, Any]]:
        from pyarrow import parquet

        return parquet.read_table(file).to_pylist()

    def run() -> Any:
        collection = bag.from_delayed([delayed(rows)(file) for file in sorted(folder.iterdir())])
        return evaluate_dask(collection, matcher=matcher).result

    with dask.config.set(scheduler="processes", num_workers=cores):
        yield run


@contextmanager
def spark_engine(folder: Path, matcher: str, cores: int) -> Iterator[Callable[[], Any]]:
    """Yield what evaluates on Spark, in local mode."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from krag_eval.distributed import evaluate_spark

    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield lambda: evaluate_spark(session.read.parquet(str(folder)), matcher=matcher).result
    finally:
        session.stop()


@contextmanager
def ray_engine(folder: Path, matcher: str, cores: int) -> Iterator[Callable[[], Any]]:
    """Yield what evaluates on Ray, on this machine."""
    import logging

    import ray

    from krag_eval.distributed import evaluate_ray

    ray.init(num_cpus=cores, include_dashboard=False, logging_level=logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield lambda: evaluate_ray(ray.data.read_parquet(str(folder)), matcher=matcher).result
    finally:
        ray.shutdown()


ENGINES = {"dask": dask_engine, "spark": spark_engine, "ray": ray_engine}


def seconds(run: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Return the median wall time of some rounds, the first one (loading) left out."""
    result = run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--matcher", default="coverage")
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=list(ENGINES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, options.queries, options.files)
        n_queries = options.queries // options.files * options.files
        base, expected = seconds(lambda: one_process(folder, options.matcher), options.rounds)
        print(f"{n_queries:,} queries x 10 chunks, {options.matcher}, {os.cpu_count()} cores")
        print(f"{'engine':<12} {'cores':>5} {'s':>8} {'queries/s':>10} {'speed-up':>9}  digits")
        print(f"{'one process':<12} {1:>5} {base:>8.2f} {n_queries / base:>10,.0f} {1.0:>9.2f}")
        fastest = n_queries / base
        for engine in options.engines:
            for cores in (1, 2):
                with ENGINES[engine](folder, options.matcher, cores) as run:
                    taken, result = seconds(run, options.rounds)
                same = "equal" if result.to_dict() == expected.to_dict() else "DIFFERENT"
                rate = n_queries / taken
                fastest = max(fastest, rate)
                numbers = f"{taken:>8.2f} {rate:>10,.0f} {base / taken:>9.2f}"
                print(f"{engine:<12} {cores:>5} {numbers}  {same}", flush=True)
    hours = 100e6 / fastest / 3600
    cores = os.cpu_count() or 1
    print(
        f"100 million queries at {fastest:,.0f} queries/s on {cores} cores: {hours:.1f} h; on 64 "
        f"such cores, if it scales so far: {hours * cores / 64:.1f} h"
    )


if __name__ == "__main__":
    main()
