"""The tables of the page *What a matcher's yes is worth*, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from study.tables import GROUPS, chosen, group_of, markdown, number, with_bounds

Found = Mapping[str, Any]

#: Pairs -> what the page and its picture call them, in both languages.
KINDS: dict[tuple[str, str, str], tuple[str, str]] = {
    ("verbatim", "clapnq", "en"): ("passages, English", "원문 그대로, 영어"),
    ("verbatim", "korquad", "ko"): ("passages, Korean", "원문 그대로, 한국어"),
    ("damaged", "clapnq", "en"): ("damaged, English", "깨진 텍스트, 영어"),
    ("damaged", "korquad", "ko"): ("damaged, Korean", "깨진 텍스트, 한국어"),
    ("apart", "clapnq", "en"): ("sentences apart, English", "떨어진 문장들, 영어"),
    ("contradicted", "clapnq", "en"): ("one thing changed, English", "한 군데만 바뀜, 영어"),
    ("contradicted", "korquad", "ko"): ("one thing changed, Korean", "한 군데만 바뀜, 한국어"),
    ("claim", "wice", "en"): ("claims, Wikipedia", "다시 쓴 주장, 위키백과"),
    ("claim, experts", "expertqa", "en"): ("claims, experts", "다시 쓴 주장, 전문가"),
}
#: Those that a table of their own is about.
_CHANGED = "contradicted"
CHANGED: dict[tuple[str, str], tuple[str, str]] = {
    ("clapnq", "en"): ("English", "영어"),
    ("korquad", "ko"): ("Korean", "한국어"),
}
CHANGES = {
    "one digit": ("a digit", "숫자 하나"),
    "a year": ("a year", "연도"),
    "a negation": ("a negation", "부정 표현"),
}
_RULE = ("rule", "규칙")


_VERBATIM, _DAMAGED = (
    {language: (kind, source, language) for source, language in CHANGED}
    for kind in ("verbatim", "damaged")
)
_CLAIM, _CUT, _EXPERTS = (
    ("claim", "wice", "en"),
    ("claim, cut", "wice", "en"),
    ("claim, experts", "expertqa", "en"),
)
#: What the page says in words beside its tables: pairs, system, measures, part, reading of truth.
CITED: tuple[tuple[tuple[str, str, str], str, tuple[str, ...], str, str], ...] = (
    *(
        (of, system, measures, "held", "main")
        for of in _VERBATIM.values()
        for system, measures in (
            ("coverage", ("precision", "recall")),
            ("ROUGE-L", ("recall",)),
            ("ROUGE-L recall", ("tp", "fp")),
            ("ragas", ("recall",)),
        )
    ),
    *((of, "coverage", ("precision",), "held", "parts left out") for of in _VERBATIM.values()),
    (_VERBATIM["ko"], "coverage", ("precision", "recall"), "held", "the answer"),
    (_VERBATIM["ko"], "coverage", ("precision", "recall"), "later", "main"),
    *(
        (of, system, ("recall",), "held", "main")
        for of in _DAMAGED.values()
        for system in ("contains", "coverage")
    ),
    (_DAMAGED["ko"], "coverage, Kiwi", ("recall",), "held", "main"),
    (_DAMAGED["ko"], "ROUGE-L recall", ("recall",), "held", "main"),
    (_CLAIM, "coverage", ("recall",), "held", "main"),
    (_CLAIM, "ROUGE-L recall", ("precision", "recall"), "held", "main"),
    (_CUT, "ROUGE-L recall", ("precision",), "held", "main"),
    (_EXPERTS, "coverage", ("recall",), "held", "main"),
    (_EXPERTS, "ROUGE-L recall", ("kappa",), "held", "main"),
)
#: Whose thresholds the page says what choosing them was worth, by the pairs.
CALIBRATED = (
    (_VERBATIM["en"], ("coverage", "ROUGE-L recall", "ragas")),
    (_VERBATIM["ko"], ("coverage", "ROUGE-L recall", "ragas", "multilingual USE")),
)
#: Collection of the consequence -> its name in both languages.
COLLECTIONS = {"chroma": ("Chroma's corpora", "Chroma 말뭉치"), "clapnq": ("ClapNQ", "ClapNQ")}
_EFFECTS = {
    "recall@5": ("recall@5 off by", "recall@5 오차"),
    "ndcg@10": ("nDCG@10 off by", "nDCG@10 오차"),
    "flips": ("order turned", "순서 뒤바뀜"),
}
_REPAIRS = {
    "before": ("recall@5 off by", "recall@5 오차"),
    "after": ("after 50 labels", "라벨 50개 뒤"),
    "width": ("width of interval", "구간 너비"),
}
_ALONE = ("the 50 labels alone", "라벨 50개만")


def tables(found: Found, consequence: Found, shown: Sequence[str]) -> dict[str, bytes]:
    """Return the page's tables by file name.

    Args:
        found: The numbers about decisions.
        consequence: Those about metrics.
        shown: The systems of the page, from top to bottom.
    """
    files = {}
    for at, language in enumerate(("en", "ko")):
        parts = [table(found, shown, at) for table in (kinds, changes)]
        parts += [table(consequence, shown, at) for table in (effects, repairs)]
        files[f"page_{language}.md"] = "\n\n".join([*parts, ""]).encode()
    files["figures.md"] = f"{figures(found)}\n".encode()
    return files


def figures(found: Found) -> str:
    """Return what the page says in words, each figure with what it is."""
    rows = []
    for of, system, measures, part, how in CITED:
        kind, source, language = of
        where = {"kind": kind, "source": source, "language": language, "part": part, "how": how}
        (one,) = chosen(found["decisions"], system=system, **where)
        what = f"{GROUPS[of]}, {part}" + (f", {how}" if how != "main" else "")
        rows += [[what, system, measure, _said(one[measure])] for measure in measures]
    for of, systems in CALIBRATED:
        for one in found["calibration"]:
            if group_of(one) == of and one["system"] in systems:
                for key in ("f1_shipped", "threshold", "f1"):
                    rows.append([GROUPS[of], one["system"], key, _said(one[key])])
    for one in chosen(found["two_people"], part="held"):
        if one["decider"] in ("the first person", "coverage"):
            rows.append(["two people, held", one["decider"], "kappa", _said(one["kappa"])])
    share = found["parts_of_sentences"]["0.8"]
    rows += [["Korean windows of 80 % to all of it", "", key, f"{n:,}"] for key, n in share.items()]
    return markdown(["of what", "rule", "measure", "value"], rows)


def _said(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if isinstance(value, float) else with_bounds(value)


def effects(consequence: Found, shown: Sequence[str], at: int) -> str:
    """Return how far off metrics are, and the mean share of orders turned by recall@5 of 50."""
    rows = []
    for name in shown:
        cells = []
        for effect in _EFFECTS:
            for collection in COLLECTIONS:
                one = consequence[collection]["systems"].get(name)
                cells.append(short(_effect(one, effect)) if one else "")
        rows.append([name, *cells])
    head = [f"{what[at]}, {of[at]}" for what in _EFFECTS.values() for of in COLLECTIONS.values()]
    return markdown([_RULE[at], *head], rows)


def _effect(one: Mapping[str, Any], effect: str) -> float:
    if effect != "flips":
        return float(one["mean absolute error"][effect])
    return mean(of["recall@5"]["flips"] for of in one["orders"].values())


def repairs(consequence: Found, shown: Sequence[str], at: int) -> str:
    """Return what 50 labels mend of recall@5: means over retrievers and draws."""

    def cells(name: str, measures: Sequence[str]) -> list[str]:
        found = []
        for measure in measures:
            for collection in COLLECTIONS:
                one = consequence[collection]["systems"].get(name)
                of = one["repair"].values() if one and measure else ()
                found.append(short(mean(it["recall@5"][measure] for it in of)) if of else "")
        return found

    head = [f"{what[at]}, {of[at]}" for what in _REPAIRS.values() for of in COLLECTIONS.values()]
    rows = [[name, *cells(name, [*_REPAIRS])] for name in shown]
    alone = [_ALONE[at], *cells(shown[0], ["", "alone", "width alone"])]
    return markdown([_RULE[at], *head], [*rows, alone])


def kinds(found: Found, shown: Sequence[str], at: int) -> str:
    """Return precision and recall, held, by kind of truth."""
    records = {
        (*group_of(one), one["system"]): one
        for one in chosen(found["decisions"], how="main", part="held")
    }
    columns = {kind: names[at] for kind, names in KINDS.items() if kind[0] != _CHANGED}
    rows = []
    for name in shown:
        cells = []
        for column in columns:
            one = records.get((*column, name))
            both = [one[key][0] for key in ("precision", "recall")] if one else []
            cells.append(" / ".join(map(short, both)) or "")
        rows.append([name, *cells])
    return markdown([_RULE[at], *columns.values()], rows)


def changes(found: Found, shown: Sequence[str], at: int) -> str:
    """Return the share of changed chunks that a rule accepts, of those whose original it does."""
    records = {
        (one["source"], one["language"], one["variant"], one["system"]): one
        for one in chosen(found["contradictions"], part="held")
    }
    head = [f"{where[at]}: {what[at]}" for where in CHANGED.values() for what in CHANGES.values()]
    rows = []
    for name in shown:
        cells = [
            short(records[*where, what, name]["accepted_of_accepted"])
            if (*where, what, name) in records
            else ""
            for where in CHANGED
            for what in CHANGES
        ]
        rows.append([name, *cells])
    return markdown([_RULE[at], *head], rows)


def short(value: float | None) -> str:
    """Return two digits.

    >>> short(0.986), short(1.0), short(0.0), short(None)
    ('.99', '1.00', '.00', '–')
    """
    return "–" if value is None else f"{value:.2f}".removeprefix("0") if value < 1 else "1.00"
