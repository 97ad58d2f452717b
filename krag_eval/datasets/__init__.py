"""Readers of files and tables: what should have been retrieved, and what was.

A file is read whole or refused, by an error that names the file and the line.
"""

from krag_eval.datasets.autorag import read_autorag
from krag_eval.datasets.beir import read_beir
from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.formats import File, Format
from krag_eval.datasets.loading import demo_dataset, load_dataset, read_jsonl
from krag_eval.datasets.traces import read_traces
from krag_eval.datasets.trec import read_trec
from krag_eval.errors import DatasetError

__all__ = [
    "Dataset",
    "DatasetError",
    "File",
    "Format",
    "demo_dataset",
    "load_dataset",
    "read_autorag",
    "read_beir",
    "read_jsonl",
    "read_traces",
    "read_trec",
]
