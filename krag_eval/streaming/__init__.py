"""Streaming: files of any size evaluated in chunks, with memory for one chunk at a time.

This room knows how a run over files goes on from chunk to chunk, and after a kill. It must not
know formulas, or how files are parsed.
"""

from krag_eval.streaming.files import evaluate_file

__all__ = ["evaluate_file"]
