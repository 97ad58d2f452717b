"""Retrievers: asking them the questions of a data set, and recording them inside a chain."""
