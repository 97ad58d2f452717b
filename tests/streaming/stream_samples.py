"""Files of queries to stream: some found, some missed, some graded, one answer in several forms."""

import gzip
import json
import random
from pathlib import Path
from typing import Any


def queries(n: int, *, unnamed: int | None = None) -> list[dict[str, Any]]:
    """Return queries as they stand on lines; one of them may have no question."""
    random_ = random.Random(n)
    made = []
    for number in range(n):
        actual: list[Any] = [f"t{number}.{i}" for i in range(random_.randint(1, 3))]
        predicted = random_.sample([*actual, *(f"x{number}.{i}" for i in range(5))], 4)
        if number % 3 == 0:
            actual.append({"page_content": f"y{number}", "metadata": {"grade": 2}})
            predicted.insert(1, f"y{number}")
        if number % 4 == 0:
            actual[0] = {"any_of": [actual[0], "other"]}
        made.append({"question": f"{number}는?", "actual": actual, "predicted": predicted})
    if unnamed is not None:
        del made[unnamed]["question"]
    return made


def write_jsonl(path: Path, lines: list[dict[str, Any]]) -> Path:
    """Write queries as JSON lines; compressed, if the name says so."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    data = text.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_parquet(path: Path, lines: list[dict[str, Any]], **options: Any) -> Path:
    """Write queries as a Parquet file; every document is a record there."""
    import pyarrow as pa
    from pyarrow import parquet

    def record(document: Any) -> dict[str, Any]:
        return {"page_content": document} if isinstance(document, str) else document

    rows = [{**line, "actual": [record(one) for one in line["actual"]]} for line in lines]
    parquet.write_table(pa.Table.from_pylist(rows), path, **options)
    return path
