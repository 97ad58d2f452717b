"""Readers of files and tables: what should have been retrieved, and what was.

A file is read whole or refused, by an error that names the file and the line.
"""

from krag_eval.core.data.dataset import Dataset
from krag_eval.core.data.formats import File, Format
from krag_eval.core.data.loading import demo_dataset, load_dataset, read_jsonl
from krag_eval.core.errors import DatasetError
from krag_eval.formats.autorag import read_autorag
from krag_eval.formats.beir import read_beir
from krag_eval.formats.traces import read_traces
from krag_eval.formats.trec import read_trec

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
