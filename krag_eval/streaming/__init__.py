"""Streaming: files of any size evaluated in chunks, in memory for one chunk at a time."""

from krag_eval.streaming.files import evaluate_file

__all__ = ["evaluate_file"]
