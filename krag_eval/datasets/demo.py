"""The data set that ships with the package."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.jsonl import read_jsonl

__all__ = ["demo_dataset"]


def demo_dataset() -> Dataset:
    """Return the small English and Korean data set that ships with the package.

    >>> demo_dataset().queries[0]
    'What do a parent and a child each need to get a library card?'
    """
    with resources.files("krag_eval.data").joinpath("demo.jsonl").open("rb") as file:
        return replace(read_jsonl(file), source="krag_eval's demo data")
