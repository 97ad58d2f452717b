"""What krag_eval adds to a query it saves: its label, and how to evaluate the data set.

In a file this is one more field, ``"krag_eval"``, an object with ``"label"`` where that is not the
question, ``"evaluator"`` with the data set's defaults, and ``"shielded": true`` where the question
would be a formula to a spreadsheet and was given a ``'``. Other tools ignore it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from krag_eval._errors import clipped, warn
from krag_eval._io import unshielded
from krag_eval.conventions import Conventions
from krag_eval.datasets.base import Blamed
from krag_eval.datasets.strict_json import kind_of, names_of

__all__ = ["OWN", "Mark", "labels_and_questions", "mark_in", "mark_to_write", "same_defaults"]

#: The field, or column, with what krag_eval adds.
OWN = "krag_eval"
_KEYS = {"label", "evaluator", "shielded"}
_OPTIONS = ("matcher", "threshold", "conventions", "matching_criteria", "no_ground_truth",
            "grade_key", "averaging_method")  # fmt: skip


class Mark(NamedTuple):
    """What a saved query carries beside its documents."""

    label: str | int | None = None
    defaults: Mapping[str, Any] = {}
    shielded: bool = False

    def question(self, written: Any) -> Any:
        """Return the question, from what stands in its field."""
        return unshielded(written) if self.shielded and isinstance(written, str) else written


def mark_in(value: Any, place: Blamed) -> Mark:
    """Read a mark.

    Raises:
        DatasetError: If it is none.
    """
    if value is None:
        return Mark()
    if not isinstance(value, Mapping) or not value.keys() <= _KEYS:
        got = names_of(value) if isinstance(value, Mapping) else kind_of(value)
        raise place.error(
            '"krag_eval" must be what Dataset.save wrote, an object with "label", "evaluator" and '
            f'"shielded", got {got}; leave the field out.'
        )
    label = value.get("label")
    if isinstance(label, bool) or not isinstance(label, str | int | None):
        raise place.error(f'"krag_eval": the label must be text or a number, got {kind_of(label)}.')
    is_shielded = value.get("shielded", False)
    if not isinstance(is_shielded, bool):
        raise place.error(f'"krag_eval": shielded must be true, got {kind_of(is_shielded)}.')
    return Mark(label, _defaults(value.get("evaluator") or {}, place), is_shielded)


def _defaults(value: Any, place: Blamed) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value.keys() <= set(_OPTIONS):
        raise place.error(
            '"krag_eval": the evaluator must be an object with some of '
            f"{', '.join(_OPTIONS)}; leave the field out."
        )
    defaults = dict(value)
    for name, option in defaults.items():
        if isinstance(option, bool) or not isinstance(option, str | int | float):
            raise place.error(f'"krag_eval": {name} must be text or a number.')
    if "conventions" in defaults:
        try:
            defaults["conventions"] = Conventions.parse(defaults["conventions"])
        except (TypeError, ValueError) as error:
            raise place.error(f'"krag_eval": {error}') from error
    return defaults


def mark_to_write(label: str | int | None, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what to write of a label and of defaults; ``None`` if there is nothing to say.

    Raises:
        ValueError: If a default cannot be written as text or a number.
    """
    mark: dict[str, Any] = {} if label is None else {"label": label}
    written = {name: _written(name, option) for name, option in defaults.items()}
    if written:
        mark["evaluator"] = written
    return mark or None


def _written(name: str, option: Any) -> Any:
    if isinstance(option, Conventions):
        return (
            ",".join(f"{field}={value}" for field, value in option.changed().items()) or "default"
        )
    plain = isinstance(option, str | int | float) and not isinstance(option, bool)
    if name in _OPTIONS and plain:
        return str(option) if isinstance(option, str) else option
    raise ValueError(
        f"the data set's default {name}={clipped(option)} cannot be written to a file; leave it "
        "out (dataclasses.replace(dataset, defaults={})), and pass it to evaluator(…) after "
        "loading."
    )


def same_defaults(marks: Sequence[Mark], place_of: Any) -> Mapping[str, Any]:
    """Return the defaults of a data set; all its queries carry the same.

    Raises:
        DatasetError: If two do not, or no evaluator takes them.
    """
    for number, mark in enumerate(marks):
        if mark.defaults != marks[0].defaults:
            raise place_of(number).error(
                '"krag_eval": the evaluator differs from that of the first query; evaluate data '
                "sets of different kinds one by one."
            )
    defaults = marks[0].defaults if marks else {}
    if defaults:
        _check_usable(defaults, place_of(0))
    return defaults


def _check_usable(defaults: Mapping[str, Any], place: Blamed) -> None:
    """Refuse what no evaluator takes, in the file rather than when it is evaluated."""
    from krag_eval.evaluator import OfflineRetrievalEvaluator

    # Some grade is there, so that its name is not warned about.
    metadata = {str(defaults.get("grade_key")): 1}
    actual = [[{"page_content": "a", "id": "a", "metadata": metadata}]]
    try:
        OfflineRetrievalEvaluator(actual, [["a"]], **defaults)
    except (TypeError, ValueError) as error:
        raise place.error(f'"krag_eval": the evaluator cannot be used: {error}') from error


def labels_and_questions(
    asked: Sequence[str | int | None], marks: Sequence[Mark], name: str, field: str, place_of: Any
) -> tuple[list[str | int], list[str] | None]:
    """Return the labels of queries, and what to ask a retriever.

    A label is what a mark says, or the question; unless there is one for every query, all are
    labelled by position, with a warning if there are some.
    """
    found = [one if mark.label is None else mark.label
             for one, mark in zip(asked, marks, strict=True)]  # fmt: skip
    labels = [label for label in found if label is not None]
    texts = [one for one in asked if isinstance(one, str)]
    questions = texts if len(texts) == len(asked) else None
    if len(labels) == len(found):
        return labels, questions
    if labels:
        without = next(number for number, label in enumerate(found) if label is None)
        warn(
            f"{len(found) - len(labels)} of {len(found)} queries in {name} have no {field} (the "
            f"first is {place_of(without)}), so all are labelled by position."
        )
    return list(range(len(found))), questions
