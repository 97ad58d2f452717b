"""Measure how good retrieval is in a RAG system, and trust the answer."""

__version__ = "0.1.0"
