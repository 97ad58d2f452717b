"""Questions with their documents, from wherever they are: files, frames, runs; and saved again.

A source becomes rows (``formats``, ``reading``), ``vocabularies`` say what their fields
mean, ``table`` makes a query of each, and ``joining`` puts questions and a run together.
"""
