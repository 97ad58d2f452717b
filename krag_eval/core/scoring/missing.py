"""Questions of a ground truth that a run lacks: how many, what happened to them, how to say so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias, cast

from krag_eval.core.language import _

#: What happened to them: left out, or counted as nothing retrieved.
Way: TypeAlias = Literal["skip", "zero"]
_SETTING = "missing"
_WRITTEN = re.compile(r"([0-9]+) of ([0-9]+), (skip|zero)")


class MissingQuestions(NamedTuple):
    """Questions of a ground truth that a run lacks.

    Attributes:
        n: How many it lacks.
        questions: How many questions the ground truth has.
        way: ``"skip"`` if they are left out, ``"zero"`` if they count as nothing retrieved.

    >>> str(MissingQuestions(57, 60, "skip"))
    '57 of 60, skip'
    """

    n: int
    questions: int
    way: Way

    @classmethod
    def of(cls, n: int, questions: int, way: str | None) -> MissingQuestions | None:
        """Return what is missing; ``None`` where nothing is."""
        return cls(n, questions, cast("Way", way)) if n else None

    @classmethod
    def of_settings(cls, settings: Mapping[str, str]) -> MissingQuestions | None:
        """Return what the settings of a result say of it; ``None`` where they say nothing."""
        written = _WRITTEN.fullmatch(settings.get(_SETTING, ""))
        return written and cls(int(written[1]), int(written[2]), cast("Way", written[3]))

    @property
    def n_left_out(self) -> int:
        """How many the numbers do not rest on."""
        return self.n if self.way == "skip" else 0

    def __str__(self) -> str:
        return f"{self.n} of {self.questions}, {self.way}"

    def added_to(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a result with this, behind the number of its queries."""
        extended: dict[str, str] = {}
        for name, value in settings.items():
            extended |= {name: value} | ({_SETTING: str(self)} if name == "queries" else {})
        return extended


def told_missing(missing: Mapping[str, MissingQuestions | None]) -> list[str]:
    """Say in a sentence each what was left out, and what counts as nothing retrieved.

    Args:
        missing: The name of a result, ``""`` where there is one alone -> what it lacks.

    >>> told_missing({"new": MissingQuestions(57, 60, "skip"), "old": None})
    ['Questions that the run lacks, and that are left out: 57 of 60 (new).']
    """
    sentences = {
        "skip": _("Questions that the run lacks, and that are left out: {counts}."),
        "zero": _("Questions that the run lacks, and that count as nothing retrieved: {counts}."),
    }
    messages = []
    for way, sentence in sentences.items():
        counts = [
            _("{n} of {questions}").format(n=one.n, questions=one.questions)
            + (f" ({name})" if name else "")
            for name, one in missing.items()
            if one is not None and one.way == way
        ]
        messages += [sentence.format(counts=", ".join(counts))] if counts else []
    return messages
