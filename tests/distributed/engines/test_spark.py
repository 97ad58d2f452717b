"""Spark on this machine: ``local[2]``, with real workers."""

import os
import subprocess
import sys

import pytest
from cluster_samples import (
    SEEN,
    check_budgets,
    check_run,
    check_seen,
    local,
    sample,
    with_seen,
    within,
)
from pyspark.sql import SparkSession, types as spark_types

from krag_eval import CoverageMatcher, KiwiTokenizer, RougeMatcher
from krag_eval.distributed import evaluate_spark

ROWS = sample()
TEXTS = "question string, actual array<string>, predicted array<string>"
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
        .getOrCreate()
    )
    yield session
    session.stop()


def frame_of(spark, rows=ROWS, schema=TEXTS):
    """Return a frame of rows, in several partitions."""
    ordered = [tuple(row[name] for name in ("question", "actual", "predicted")) for row in rows]
    return spark.createDataFrame(ordered, schema)


@pytest.mark.parametrize("n_partitions", [1, 3, 9])
def test_spark_gives_the_digits_of_a_local_run(spark, n_partitions):
    """Whatever the partitioning, empty partitions among them; every row too."""
    frame = frame_of(spark).repartition(n_partitions)
    run = evaluate_spark(frame, k=[1, 3, 10], matcher="coverage")
    check_run(run.result, [row.asDict() for row in run.per_query.collect()])


def test_budgets_are_those_of_a_local_run(spark):
    """By words and by a function of one's own; lengths and ranks come back as text."""
    run = evaluate_spark(frame_of(spark).repartition(3), **within(), matcher="coverage(union=yes)")
    check_budgets(run.result, [row.asDict() for row in run.per_query.collect()])


def test_what_was_looked_at_is_a_column(spark):
    """Null says that nothing was; a column of another type is refused."""
    names = ("question", "actual", "predicted", "seen", "bad", "used")
    lists = [f"{name} array<string>" for name in names[1:]]
    schema = ", ".join(["question string", *lists])
    frame = spark.createDataFrame([tuple(row[name] for name in names) for row in SEEN], schema)
    run = evaluate_spark(frame.repartition(2), **with_seen())
    check_seen(run.result, [row.asDict() for row in run.per_query.collect()])
    with pytest.raises(TypeError, match="judged_field"):
        evaluate_spark(frame, judged_field="question")


def test_structs_are_documents(spark):
    """With metadata as a struct or a map, null ids, and grades."""
    document = (
        "struct<page_content: string, id: string, metadata: struct<relevance: double, page: int>>"
    )
    schema = f"question string, actual array<{document}>, predicted array<{document}>"

    def documents(texts, grade):
        return [{"page_content": one, "metadata": {"relevance": grade}} for one in texts]

    rows = [
        {**row, "actual": documents(row["actual"], float(number % 3) or None),
         "predicted": documents(row["predicted"], None)}
        for number, row in enumerate(ROWS)
    ]  # fmt: skip
    options = {"matcher": "contains", "grade_key": "relevance"}
    run = evaluate_spark(frame_of(spark, rows, schema), k=[1, 3, 10], **options)
    graded = [
        {**row, "actual": [
            one if one["metadata"]["relevance"] else {"page_content": one["page_content"]}
            for one in row["actual"]]}
        for row in rows
    ]  # fmt: skip
    assert run.result.to_dict() == local(graded, **options).to_dict()
    with_map = schema.replace("struct<relevance: double, page: int>", "map<string, double>")
    run = evaluate_spark(frame_of(spark, rows, with_map), k=[1, 3, 10], **options)
    assert run.result.to_dict() == local(graded, **options).to_dict()


def test_one_kiwi_serves_a_worker(spark):
    """Korean morphemes on workers, with the digits of a local run."""
    rows = [{"question": str(n), "actual": [f"도서관은 {n}시에 문을 엽니다."],
             "predicted": ["월요일은 쉽니다.", f"도서관이 {n}시에 문을 열었습니다."]}
            for n in range(12)]  # fmt: skip
    matcher = RougeMatcher("rouge1", 0.6, tokenizer=KiwiTokenizer())
    run = evaluate_spark(frame_of(spark, rows).repartition(4), k=[1, 2], matcher=matcher)
    assert run.result.to_dict() == local(rows, [1, 2], matcher=matcher).to_dict()


def test_a_matcher_of_a_notebook_travels(spark):
    """Classes that no worker can import are sent by value."""

    class Shouting(CoverageMatcher):
        name = "shouting"

    run = evaluate_spark(frame_of(spark), k=3, matcher=Shouting())
    assert run.result.to_dict() == local(ROWS, 3, matcher="coverage").to_dict()


def test_a_persisted_run_keeps_its_rows(spark):
    """Result and rows come from what Spark keeps."""
    run = evaluate_spark(frame_of(spark), k=3, matcher="contains").persist()
    assert run.per_query.count() == len(ROWS)
    assert run.result.to_dict() == local(ROWS, 3, matcher="contains").to_dict()


def test_columns_are_checked_on_the_driver(spark):
    """Their names and their types."""
    with pytest.raises(ValueError, match="actual_field must be a column of the table"):
        evaluate_spark(frame_of(spark), actual_field="truth")
    flat = spark.createDataFrame(
        [("?", "['a']", ["a"])], TEXTS.replace("array<string>", "string", 1)
    )
    with pytest.raises(TypeError, match=r"'actual' must be an array of strings .* got string"):
        evaluate_spark(flat)
    assert isinstance(flat.schema["actual"].dataType, spark_types.StringType)
    with pytest.raises(TypeError, match="frame must be a Spark DataFrame, got a list"):
        evaluate_spark([])


def test_a_workers_python_without_krag_eval_is_told(tmp_path):
    """In a session of its own, whose workers are another Python: the remedy is named."""
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    script = tmp_path / "driver.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "from krag_eval.distributed import evaluate_spark\n"
        'spark = SparkSession.builder.master("local[1]")'
        '.config("spark.ui.enabled", "false").getOrCreate()\n'
        f'frame = spark.createDataFrame([("?", ["a"], ["a"])], "{TEXTS}")\n'
        "try:\n"
        "    evaluate_spark(frame)\n"
        "except RuntimeError as error:\n"
        '    print("REFUSED", error)\n'
    )
    ran = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYSPARK_PYTHON": str(bare / "bin" / "python")},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "REFUSED Spark's workers" in ran.stdout
    assert "PYSPARK_PYTHON" in ran.stdout
