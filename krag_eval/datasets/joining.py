"""Joining what should be retrieved with what was, query by query: none is dropped unsaid."""

from __future__ import annotations

from collections.abc import Collection

from krag_eval._errors import warn
from krag_eval.datasets.base import Place

__all__ = ["check_overlap"]


def check_overlap(
    expected: Collection[str],
    given: Collection[str],
    *,
    expected_name: str,
    given_name: str,
    absent: str | None = "and count as nothing retrieved",
) -> None:
    """Warn of queries that only one side knows.

    Args:
        expected: The queries to evaluate.
        given: Those something was retrieved for.
        expected_name: Where the former stand.
        given_name: Where the latter stand.
        absent: What happens to those of the former that the latter lack, for the warning; no
            warning if ``None``.

    Raises:
        DatasetError: If they have none in common.
    """
    known, retrieved = frozenset(expected), frozenset(given)
    if known.isdisjoint(retrieved):
        some = f" (such as {next(iter(given))!r})" if given else ""
        raise Place(given_name).error(
            f"none of its {len(given)} queries{some} is among the {len(expected)} of "
            f"{expected_name} (such as {next(iter(expected))!r}); are they of the same collection?"
        )
    extra = [query for query in given if query not in known]
    if extra:
        warn(
            f"{given_name}: {len(extra)} of {len(given)} queries are not in {expected_name} and "
            f"are left out (the first is {extra[0]!r})."
        )
    lacking = [query for query in expected if query not in retrieved]
    if lacking and absent is not None:
        warn(
            f"{given_name}: {len(lacking)} of the {len(expected)} queries of {expected_name} are "
            f"missing (the first is {lacking[0]!r}) {absent}."
        )
