"""The numbers of the study as Markdown tables, three digits each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
Found = Mapping[str, Any]

#: (kind, source, language) -> its heading.
GROUPS = {
    ("verbatim", "clapnq", "en"): "verbatim, English (ClapNQ)",
    ("verbatim", "korquad", "ko"): "verbatim, Korean (KorQuAD)",
    ("damaged", "clapnq", "en"): "damaged, English (ClapNQ)",
    ("damaged", "korquad", "ko"): "damaged, Korean (KorQuAD)",
    ("apart", "clapnq", "en"): "apart, English (ClapNQ)",
    ("claim", "wice", "en"): "claim (WiCE)",
    ("claim, cut", "wice", "en"): "claim, cut (WiCE)",
    ("claim, experts", "expertqa", "en"): "claim, experts (ExpertQA)",
    ("contradicted", "clapnq", "en"): "contradicted, English (ClapNQ)",
    ("contradicted", "korquad", "ko"): "contradicted, Korean (KorQuAD)",
    ("contradicted", "texts", "en"): "contradicted, English (texts)",
    ("contradicted", "texts", "ko"): "contradicted, Korean (texts)",
    ("contradicted", "texts", "mix"): "contradicted, mixed (texts)",
}
PARTS = ("held", "open", "later")
_SHORT = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "kappa": "κ",
    "auc": "AUC",
    "balanced_precision": "precision, one in two right",
}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as tables have it.

    >>> number(0.98765), number(None)
    ('0.988', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def with_bounds(values: Sequence[float | None] | None) -> str:
    """Return a number with its interval.

    >>> with_bounds([0.5, 0.4, 0.6]), with_bounds([0.5, None, None]), with_bounds(None)
    ('0.500 (0.400 to 0.600)', '0.500', '–')
    """
    if values is None:
        return "–"
    value, low, high = values
    return number(value) if low is None else f"{number(value)} ({number(low)} to {number(high)})"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    >>> print(markdown(["a", "b"], [["1", "2"]]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def group_of(record: Record) -> tuple[str, str, str]:
    """Return of which pairs a record is."""
    return record["kind"], record["source"], record["language"]


def chosen(records: Iterable[Record], **wanted: Any) -> list[Record]:
    """Return the records that have these values."""
    return [one for one in records if all(one[key] == value for key, value in wanted.items())]


def crossed(
    records: Iterable[Record],
    row: Callable[[Record], str],
    column: Callable[[Record], str],
    cell: Callable[[Record], str],
    corner: str,
    rows: Sequence[str] | None = None,
) -> str:
    """Return a table with one cell per record, rows and columns in the order they come in."""
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for one in records:
        cells.setdefault(row(one), {})[column(one)] = cell(one)
        columns[column(one)] = None
    order = [one for one in rows if one in cells] if rows is not None else [*cells]
    lines = [[one, *(cells[one].get(name, "–") for name in columns)] for one in order]
    return markdown([corner, *columns], lines)


def tables(found: Found) -> str:
    """Return all tables about decisions."""
    names = [*found["systems"]]
    out = ["# Results", "", f"Made by `python -m study`; {found['made_with']}.", ""]

    def section(title: str, *texts: str) -> None:
        out.extend([f"## {title}", "", *(line for text in texts for line in (text, ""))])

    rows = [
        [GROUPS[group_of(one)], one["part"], *(f"{one[key]:,}" for key in COUNTED)]
        for one in found["pairs"]
    ]
    section("Pairs", markdown(["kind", "part", *COUNTED.values()], rows))
    left = [[reason, f"{n:,}"] for reason, n in found["left_out"].items()]
    section("Left out", markdown(["what", "how many"], left))
    section(
        "Systems",
        markdown(
            ["system", "threshold", "definition"],
            [
                [name, number(one["threshold"], 2), one["definition"].replace("|", "\\|")]
                for name, one in found["systems"].items()
            ],
        ),
        markdown(["not run", "why"], [[name, why] for name, why in found["not_run"].items()]),
    )
    main = chosen(found["decisions"], how="main")
    for measure in ("f1", "precision", "recall", "kappa", "auc", "balanced_precision"):
        records = [one for one in chosen(main, part="held") if one.get(measure) is not None]
        section(
            f"{_SHORT[measure]}, held",
            crossed(
                records,
                lambda one: one["system"],
                lambda one: GROUPS[group_of(one)],
                lambda one, measure=measure: number(_value(one[measure])),
                "system",
                names,
            ),
        )
    for group, title in GROUPS.items():
        for part in PARTS:
            records = [one for one in chosen(main, part=part) if group_of(one) == group]
            if records:
                section(f"{title}, {part}", _of_group(records))
    _disputed(found, section)
    title = "Windows with a part of the sentence, all parts: how many hold the answer"
    section(title, _parts(found))
    section("Calibrated on open, tried on held: F1", *_calibrated(found))
    for part in ("held", "open"):
        section(
            f"Damage, F1, {part}",
            crossed(
                chosen(found["damage"], part=part),
                lambda one: one["system"],
                lambda one: f"{one['language']}: {one['variant']}",
                lambda one: number(one["f1"]),
                "system",
                names,
            ),
        )
    for part in PARTS:
        for key, title in (("accepted", "all"), ("accepted_of_accepted", "originals accepted")):
            records = chosen(found["contradictions"], part=part)
            if records:
                section(
                    f"Changed in one thing, share accepted, {part}, {title}",
                    crossed(
                        records,
                        lambda one: one["system"],
                        lambda one: f"{one['source']} {one['language']}: {one['variant']}",
                        lambda one, key=key: number(one[key]),
                        "system",
                        names,
                    ),
                )
    section(
        "Two people (ClapNQ): κ with the second one's verdict on windows",
        crossed(
            found["two_people"],
            lambda one: one["decider"],
            lambda one: f"{one['part']} ({one['n']:,} windows)",
            lambda one: with_bounds(one["kappa"]),
            "decider",
        ),
    )
    return "\n".join(out).rstrip() + "\n"


COUNTED = {"n": "pairs", "right": "right", "wanted": "wanted texts", "documents": "documents"}


def _value(measure: Any) -> float | None:
    return measure[0] if isinstance(measure, list) else measure


def _of_group(records: Sequence[Record]) -> str:
    columns = [one for one in _SHORT if one in records[0]]
    return markdown(
        ["system", "right", "false", "missed", *(_SHORT[one] for one in columns)],
        [
            [
                one["system"],
                *(f"{one[key]:,}" for key in ("tp", "fp", "fn")),
                *(
                    number(one[key]) if key == "auc" else with_bounds(one[key])
                    for key in columns
                ),
            ]
            for one in records
        ],
    )  # fmt: skip


def _disputed(found: Found, section: Callable[..., None]) -> None:
    for how in dict.fromkeys(one["how"] for one in found["decisions"]):
        if how == "main":
            continue
        section(
            f"Where truth may be disputed: {how}, held; precision / recall / F1",
            crossed(
                chosen(found["decisions"], how=how, part="held"),
                lambda one: one["system"],
                lambda one: GROUPS[group_of(one)],
                lambda one: " / ".join(
                    number(one[key][0]) for key in ("precision", "recall", "f1")
                ),
                "system",
                [*found["systems"]],
            ),
        )  # fmt: skip


def _parts(found: Found) -> str:
    shares = found["parts_of_sentences"]
    highest = [*[f"to {float(one):.0%}" for one in shares][1:], "all of it"]
    return markdown(
        ["share of the sentence held", "windows", "hold the answer"],
        [
            [
                "all of it" if float(low) == 1 else f"{float(low):.0%} {high}",
                f"{one['windows']:,}",
                f"{one['hold the answer']:,}",
            ]
            for (low, one), high in zip(shares.items(), highest, strict=True)
        ],
    )


def _calibrated(found: Found) -> Iterable[str]:
    for group, title in GROUPS.items():
        records = [one for one in found["calibration"] if group_of(one) == group]
        if records:
            yield f"### {title}"
            yield markdown(
                ["system", "shipped", "F1", "chosen", "F1", "precision", "recall"],
                [
                    [
                        one["system"],
                        number(one["shipped_threshold"], 2),
                        with_bounds(one["f1_shipped"]),
                        number(one["threshold"]),
                        with_bounds(one["f1"]),
                        number(one["precision"][0]),
                        number(one["recall"][0]),
                    ]
                    for one in records
                ],
            )
