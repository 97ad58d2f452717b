"""Thin adapters to other tools: krag_eval's numbers in the form those tools take.

Each module knows the shapes of one tool. None may know formulas.
"""
