"""Measurements by hand: each module says how it is run; ``python -m benchmarks`` runs them all.

A module takes part in the whole by defining ``rows(quick: bool) -> list[Row]`` (see ``measuring``).
No test measures time, and nothing here is part of the installed package.
"""
