"""Explanations: one query, with what every document matched and how every item was found or missed.

An explanation words the evidence of one query; pandas is loaded only for a table.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations, product
from typing import TYPE_CHECKING, Literal

import numpy as np

from krag_eval._language import N_, Language, _, ngettext, speaking
from krag_eval._text import (
    Excerpt,
    Row,
    Section,
    Sheet,
    agreement,
    as_html,
    as_text,
    fitted,
    united,
    whole_percent,
)
from krag_eval.conventions import Conventions
from krag_eval.documents import text_of
from krag_eval.errors import InvalidInput, InvalidType, told_apart
from krag_eval.matching.base import Matcher, resolve_matcher
from krag_eval.matching.coverage import CoverageMatcher
from krag_eval.matching.exact import ContainsMatcher, ExactTextMatcher, IdMatcher, MetadataMatcher
from krag_eval.matching.joins import Pieces
from krag_eval.matching.tokenizers import letter_tokens, tokenizer_name
from krag_eval.results.evidence import (
    About,
    Evidence,
    GroundTruthItem,
    NearMiss,
    PredictedDocument,
    checked_metadata,
    outcomes,
)
from krag_eval.scoring.cutoffs import Budget, Cutoff, amount_in_words, spelled
from krag_eval.scoring.metrics import counts_at_places

if TYPE_CHECKING:
    import pandas as pd

_WIDTH = 100
# What is shown of long lists: the first so many, and of the rest those that are spoken of.
_SHOWN = 20
_SHOWN_AT_MOST = 50
_ALTERNATIVES = 6
# Characters shown of what an exception said.
_FAILURE = 300


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """One query, explained; made by ``result.explain``.

    ``print`` shows it as text and a notebook as HTML. Texts from documents are clipped around the
    words on which ground truth and prediction agree, and these are highlighted; that comparison is
    for the eye alone and decides nothing.

    Attributes:
        query: The query's label.
        position: Its position, from 0.
        k: The cutoff.
        status: ``"perfect"``, ``"partial"``, ``"missed"``, ``"nothing retrieved"`` or
            ``"no ground truth"``.
        metrics: The query's own metrics at the cutoff; NaN where one is undefined.
        matcher: The matcher's signature.
        threshold: Similarity from which a pair is a match; ``None`` for a matcher that takes none.
        conventions: The conventions the metrics were computed under.
        documents: The predicted documents, best first.
        items: The ground-truth items.
        failure: What went wrong when the retriever was asked, ``"TimeoutError: no answer"``;
            ``None`` if it answered. Such a query counts as nothing retrieved.
        n_seen: Predicted documents within the cutoff; at a budget, those that fit.
        by_runs: Whether the matcher counts words in runs, so that nothing in common means that no
            run is long enough.
        full: Whether to show everything, unless asked otherwise.
        by_letters: Whether the matcher reads this query by letters, whatever the spaces.
        language: What to show it in, unless asked otherwise; ``None`` for what ``KRAG_EVAL_LANG``
            says, else ``"en"``.
        condensed: Whether the metrics are those of the list without its unjudged documents; ranks
            are those of the whole list.
    """

    query: str | int
    position: int
    k: Cutoff
    status: str
    metrics: Mapping[str, float]
    matcher: str
    threshold: float | None
    conventions: Conventions
    documents: tuple[PredictedDocument, ...]
    items: tuple[GroundTruthItem, ...]
    failure: str | None = None
    n_seen: int = 0
    by_runs: bool = False
    full: bool = False
    by_letters: bool = False
    language: Language | None = None
    condensed: bool = False

    @property
    def predicted(self) -> pd.DataFrame:
        """The predicted documents: one row per rank, texts in full.

        What is told beside them has columns of its own, ``id``, ``source`` and so on, where any
        document has it; one that would be called like another column has ``metadata:`` in front.
        """
        import pandas as pd

        columns = {
            "credit": pd.Series([d.credit for d in self.documents], dtype=object),
            "matches": pd.Series([d.matches for d in self.documents], dtype=object),
            "first_for": pd.Series([d.first_for for d in self.documents], dtype=object),
            "similarity": pd.Series([d.similarity for d in self.documents], dtype=float),
            "closest": pd.Series([d.closest for d in self.documents], dtype="Int64"),
            "text": pd.Series([d.text for d in self.documents], dtype=object),
        }
        columns |= _columns_about([[d.about] for d in self.documents], columns)
        index = pd.Index([d.rank for d in self.documents], name="rank", dtype=np.int64)
        return pd.DataFrame(columns).set_index(index)

    @property
    def ground_truth(self) -> pd.DataFrame:
        """The ground-truth items: one row each, texts in full; alternatives joined by ``" | "``.

        What is told beside them has columns of its own, as in :attr:`predicted`.
        """
        import pandas as pd

        texts = [None if i.alternatives is None else " | ".join(i.alternatives) for i in self.items]
        columns = {
            "grade": pd.Series([i.grade for i in self.items], dtype=float),
            "outcome": pd.Series([i.outcome for i in self.items], dtype=object),
            "first_rank": pd.Series([i.first_rank for i in self.items], dtype="Int64"),
            "place": pd.Series([i.place for i in self.items], dtype="Int64"),
            "nearest_rank": pd.Series([i.nearest_rank for i in self.items], dtype="Int64"),
            "similarity": pd.Series([i.similarity for i in self.items], dtype=float),
            "shortfall": pd.Series([i.shortfall for i in self.items], dtype=float),
            "alternatives": pd.Series([i.n_alternatives for i in self.items], dtype=np.int64),
            "text": pd.Series(texts, dtype=object),
        }
        columns |= _columns_about([i.about for i in self.items], columns)
        index = pd.Index([i.number for i in self.items], name="item", dtype=np.int64)
        return pd.DataFrame(columns).set_index(index)

    def to_text(
        self, width: int = _WIDTH, *, full: bool | None = None, language: Language | None = None
    ) -> str:
        """Return the explanation as lines of at most ``width`` columns (at least 40).

        Args:
            width: The columns.
            full: Whether to show all documents, all items and their whole texts; as asked of
                ``result.explain`` if not given.
            language: ``"en"`` or ``"ko"``; as asked of ``result.explain`` if not given.
        """
        return as_text(self._sheet(full, language), max(width, 40))

    def to_html(self, *, full: bool | None = None, language: Language | None = None) -> str:
        """Return the explanation as an HTML fragment that nothing in a text can break out of.

        Args:
            full: As in :meth:`to_text`.
            language: As there.
        """
        return as_html(self._sheet(full, language))

    def _sheet(self, full: bool | None, language: Language | None) -> Sheet:
        with speaking(self.language if language is None else language):
            return _sheet(self, self.full if full is None else full)

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


def _columns_about(
    rows: Sequence[Sequence[About]], taken: Iterable[str]
) -> dict[str, pd.Series[str]]:
    """Return one column per name told of any document; alternatives are joined as texts are."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for about in row for name, _ in about)
    columns = {}
    for name in names:
        values = [[dict(about).get(name) for about in row] for row in rows]
        cells = [
            " | ".join("–" if one is None else one for one in row) if any(row) else None
            for row in values
        ]
        column = f"metadata:{name}" if name in taken else name
        columns[column] = pd.Series(cells, dtype=object)
    return columns


def explained(
    evidence: Evidence,
    position: int,
    *,
    query: str | int,
    k: Cutoff,
    status: str,
    metrics: Mapping[str, float],
    matcher: str,
    conventions: Conventions,
    failure: str | None = None,
    metadata: str | Iterable[str] | None = None,
    full: bool = False,
    language: Language | None = None,
    condensed: bool = False,
) -> Explanation:
    """Explain one query from the evidence."""
    graded_by = conventions.graded_by if counts_at_places(conventions) else None
    documents, items = outcomes(evidence, position, k, graded_by, checked_metadata(metadata))
    known = _known_matcher(evidence, position, matcher)
    items = _with_near_misses(items, documents, evidence, position, known)
    n_seen = int(evidence.relevance.seen_within(k)[position])
    return Explanation(
        query=query,
        position=position,
        k=k,
        status=status,
        metrics=metrics,
        matcher=matcher,
        threshold=evidence.relevance.threshold if evidence.takes_threshold else None,
        conventions=conventions,
        documents=documents,
        items=items,
        failure=failure,
        n_seen=n_seen,
        by_runs=evidence.relevance.pieces is not None,
        full=full,
        by_letters=_reads_letters(known),
        language=language,
        condensed=condensed,
    )


def _sheet(explanation: Explanation, full: bool) -> Sheet:
    """Put an explanation into words."""
    documents, items = _highlighted(explanation, full=full)
    sections = []
    if explanation.documents:
        shown = [one for one in explanation.documents if one.rank in documents]
        brief = set() if full else _brief(explanation)
        hidden = len(explanation.documents) - len(documents)
        notes = [_("… and {} more predicted documents, not shown").format(hidden)] if hidden else []
        if any(_is_long(t) for r in brief for t in documents.get(r, ())):
            notes += [
                _(
                    "Documents that no outcome rests on are cut to a line; full=True, in the shell "
                    "--full, shows everything."
                )
            ]
        sections.append(
            Section(
                _("Predicted documents"),
                (_("rank"), _("similarity"), _("credit")),
                [
                    replace(
                        _document_row(d, documents[d.rank], explanation.threshold),
                        brief=d.rank in brief,
                    )
                    for d in shown
                ],
                numeric=frozenset({0, 1}),
                note=" ".join(notes),
            )
        )
    if explanation.items:
        hidden = len(explanation.items) - len(items)
        sections.append(
            Section(
                _("Ground truth"),
                (_("item"), _("grade"), _("outcome")),
                [
                    _item_row(
                        i, items[i.number], explanation.threshold, by_runs=explanation.by_runs
                    )
                    for i in explanation.items
                    if i.number in items
                ],
                numeric=frozenset({0, 1}),
                note=_("… and {} more items, not shown").format(hidden) if hidden else "",
            )
        )
    title = _("Query {}").format(explanation.position)
    if explanation.query != explanation.position:
        title += f": {explanation.query}"
    return Sheet(title, _lines(explanation), sections, whole=full, text=_("text"))


# Columns that a line may have left for a text.
_A_LINE = 60


def _is_long(text: Excerpt) -> bool:
    return text.cut or len(text.text) > _A_LINE


def _brief(explanation: Explanation) -> set[int]:
    """Return the ranks that no outcome rests on: their texts need no more than a line."""
    telling = {rank for item in explanation.items for rank in _partners(item)}
    telling |= {
        one.rank for one in explanation.documents if one.credit in ("first", "repeat", "piece")
    }
    return {one.rank for one in explanation.documents} - telling


def _partners(item: GroundTruthItem) -> list[int]:
    """Return the ranks that an item is compared with: of all its pieces, or the nearest one."""
    nearest = item.near.rank if item.rank is None and item.near else item.rank
    return list(item.pieces) or ([] if nearest is None else [nearest])


def _lines(explanation: Explanation) -> list[str]:
    values = (
        f"{name}@{spelled(explanation.k)} {_value(v)}" for name, v in explanation.metrics.items()
    )
    lines = [
        _outcome(explanation),
        " | ".join(values) or _("not counted in the averages"),
        _("matcher {}").format(explanation.matcher),
    ]
    if explanation.threshold is not None:
        threshold = _threshold(explanation, explanation.threshold)
        lines[-1] += _(", threshold {}").format(threshold)
    if explanation.failure is not None:
        said = " ".join(explanation.failure.split())
        short = said if len(said) <= _FAILURE else f"{said[:_FAILURE]}…"
        lines.insert(1, _("Asking the retriever failed: {}").format(short))
    if explanation.conventions.credit == "every":
        lines.append(_("By the convention credit=every, repeats are rewarded too."))
    if any(document.text is None for document in explanation.documents):
        lines.append(_("Texts were not kept; to_json(path, texts=True) keeps them."))
    if explanation.condensed:
        lines.append(
            _(
                "The numbers leave out unjudged documents, so that the others move up; ranks and "
                "outcomes below are those of the whole list."
            )
        )
    return lines


def _outcome(explanation: Explanation) -> str:
    """Say how many of the items were found, and how many documents were looked at."""
    k, found = explanation.k, [one.outcome.startswith("found") for one in explanation.items]
    if explanation.status == "no ground truth":
        summary = _("nothing should be retrieved")
    elif k is None or explanation.status == "nothing retrieved":
        summary = _("{n} of {items} items found")
    else:
        summary = _("{n} of {items} items found within {within}")
    within = _("the first {}").format(k)
    if isinstance(k, Budget):
        within = amount_in_words(k.amount, k.unit)
    summary = summary.format(n=sum(found), items=len(found), within=within)
    retrieved = _("documents retrieved: {}").format(len(explanation.documents))
    told = _("{}: {}; {}").format(_(explanation.status), summary, retrieved)
    if isinstance(k, Budget):
        told += _(", of which {} fit").format(explanation.n_seen)
    return told


def _threshold(explanation: Explanation, threshold: float) -> str:
    """Write the threshold with the digits that tell every similarity apart from it."""
    similarities = [one.similarity for one in explanation.documents]
    similarities += [one.similarity for one in explanation.items]
    bounds = (told_apart(similarity, threshold)[1] for similarity in similarities)
    return max(bounds, key=len, default=f"{threshold:g}")


def _similarity(similarity: float, threshold: float | None) -> str:
    return f"{similarity:.4f}" if threshold is None else told_apart(similarity, threshold)[0]


def _value(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def _document_row(
    document: PredictedDocument, text: Sequence[Excerpt], threshold: float | None
) -> Row:
    credit = ", ".join(
        _(_CREDITS[key]).format(_numbered(numbers)) for key, numbers in _credits(document)
    )
    similarity = _similarity(document.similarity, threshold)
    return Row((str(document.rank), similarity, credit), tuple(text), aside(document.about))


_CREDITS = {
    "first": N_("first to cover {}"),
    "repeat": N_("repeat of {}"),
    "piece": N_("piece of {}"),
    "not relevant": N_("not relevant"),
    "beyond cutoff": N_("beyond the cutoff, matches {}"),
    "completes": N_("completes {}"),
    "beyond cutoff, completes": N_("beyond the cutoff, completes {}"),
    "matches": N_("matches {}"),
    "closest": N_("closest to {}"),
}


def _credits(document: PredictedDocument) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield what to say of a document, and of which items."""
    matches, first, pieces = document.matches, document.first_for, document.piece_of
    kind = document.credit
    completes = [number for number in first if number in pieces]
    if completes and kind in ("first", "beyond cutoff"):
        yield ("completes" if kind == "first" else "beyond cutoff, completes"), completes
        alone = [one for one in (first if kind == "first" else matches) if one not in completes]
        if alone:
            yield ("first" if kind == "first" else "matches"), alone
    else:
        yield kind, {"first": first, "piece": pieces}.get(kind, matches)
    parts = [number for number in pieces if number not in first]
    if kind == "first" and parts:
        yield "piece", parts
    again = [number for number in matches if number not in first]
    if kind in ("first", "piece") and again:
        yield "repeat", again
    if not matches and kind != "piece" and document.closest is not None:
        yield "closest", [document.closest]


# Columns of a value that stands beside what is told.
_ASIDE = 60


def aside(*alternatives: About) -> str:
    """Write what is told of a document or of interchangeable ones; of many, of the first.

    >>> aside((("id", "7"), ("source", "a.pdf")), ()), aside(())
    ('id 7, source a.pdf | –', '')
    """
    told = [
        ", ".join(f"{fitted(name, _ASIDE)} {fitted(value, _ASIDE)}" for name, value in about) or "–"
        for about in alternatives[:_ALTERNATIVES]
    ]
    return " | ".join(told) if any(alternatives) else ""


def _numbered(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + ("…" if len(numbers) > 8 else "")
    return ngettext("item {}", "items {}", len(numbers)).format(shown)


# What became of an item, and whether it was missed in pieces.
_OUTCOMES = {
    ("found", False): N_("found at rank {rank}"),
    ("found in pieces", False): N_("found in pieces: {pieces}"),
    ("beyond cutoff", False): N_("missed; found at rank {rank}, beyond the cutoff"),
    ("beyond cutoff", True): N_("missed; {pieces}, rank {rank} beyond the cutoff"),
    ("missed", False): N_(
        "missed by {shortfall}; nearest: rank {nearest}, similarity {similarity}"
    ),
    ("missed", True): N_("missed by {shortfall}: {pieces}"),
    ("nothing in common", False): N_("missed; {why}"),
}


def _item_row(
    item: GroundTruthItem,
    texts: Sequence[Excerpt],
    threshold: float | None,
    *,
    by_runs: bool,
) -> Row:
    in_pieces = bool(item.pieces) and item.outcome in ("beyond cutoff", "missed")
    outcome = _(_OUTCOMES[item.outcome, in_pieces]).format(
        rank=item.first_rank,
        nearest=item.nearest_rank,
        shortfall=_short_by(item.shortfall),
        similarity=_similarity(item.similarity, threshold),
        pieces=_together(item),
        why=_nothing_in_common(item, by_runs=by_runs),
    )
    if item.place != item.first_rank and item.place is not None:
        outcome += _(", counted at place {}").format(item.place)
    if item.n_alternatives > 1:
        outcome += _(" (any of {})").format(item.n_alternatives)
    return Row((str(item.number), f"{item.grade:g}", outcome), tuple(texts), aside(*item.about))


def _nothing_in_common(item: GroundTruthItem, *, by_runs: bool) -> str:
    if item.near is not None:
        return near_in_words(item.near)
    if by_runs:
        return _("no predicted document shares a long enough run of words")
    return _("nothing in common with any predicted document")


# What is in a run, and one of it.
_UNITS = {
    N_("words"): N_("word"),
    N_("characters"): N_("character"),
    N_("tokens"): N_("token"),
}


def near_in_words(near: NearMiss) -> str:
    """Say what an item has in common with what came back.

    >>> near_in_words(NearMiss("run", 5, tokens=14, shared=6, rank=3))
    'no five words in a row in common with any predicted document; 6 of its 14 different words occur
    in rank 3'
    """
    told = [_nothing_near(near)]
    if near.shared:
        told += [
            ngettext(
                "{shared} of its {tokens} different {unit} occurs in rank {rank}",
                "{shared} of its {tokens} different {unit} occur in rank {rank}",
                near.shared,
            ).format(shared=near.shared, tokens=near.tokens, unit=_(near.unit), rank=near.rank)
        ]
    elif near.shared == 0:
        told += [_("none of its {unit} occurs in any of them").format(unit=_(near.unit))]
    if near.but_for:
        but_for = _listed(map(_, near.but_for), _(" and "))
        told += [_("rank {rank} has it but for {}").format(but_for, rank=near.rank)]
    if near.but_for and near.matchers:
        told += [_("the matcher {} would count it").format(_listed(near.matchers, _(" or ")))]
    return _("; ").join(told)


def _nothing_near(near: NearMiss) -> str:
    if near.kind == "run" and near.run == 1:
        one = _(_UNITS[near.unit])
        return _("no {} in common with any predicted document").format(one)
    if near.kind in ("run", "numbers"):
        told = _("no {run} {unit} in a row in common with any predicted document")
        if near.kind == "numbers":
            told = _(
                "no predicted document has {run} {unit} in a row in common with it and all its "
                "numbers"
            )
        numerals = dict(enumerate(_("no one two three four five six seven eight nine").split()))
        return told.format(run=numerals.get(near.run, near.run), unit=_(near.unit))
    return {
        "no words": _("it has no words"),
        "text": _("no predicted document has the same text"),
        "contains": _("no predicted document has it in its text"),
        "id": _("no predicted document has the same id"),
        "metadata": _("no predicted document has the same metadata"),
        "nothing retrieved": _("nothing was retrieved"),
    }[near.kind]


def _listed(parts: Iterable[str], last: str) -> str:
    """List parts, with a word of its own before the last.

    >>> _listed(["white space", "case", "punctuation"], " and ")
    'white space, case and punctuation'
    """
    return last.join(", ".join(parts).rsplit(", ", 1))


def _with_near_misses(
    items: tuple[GroundTruthItem, ...],
    documents: Sequence[PredictedDocument],
    evidence: Evidence,
    position: int,
    matcher: Matcher | None,
) -> tuple[GroundTruthItem, ...]:
    """Add to each item with nothing in common what that means, where the matcher is known."""
    if all(item.outcome != "nothing in common" for item in items):
        return items
    if not documents:
        find: Callable[[int, GroundTruthItem], NearMiss | None]
        find = lambda _, __: NearMiss("nothing retrieved")  # noqa: E731
    elif isinstance(matcher, CoverageMatcher):
        find = _RunsMissed(matcher, evidence.of_query(position).pieces, documents).of
    else:
        find = partial(_keys_missed, matcher, documents)
    return tuple(
        replace(item, near=find(place, item)) if item.outcome == "nothing in common" else item
        for place, item in enumerate(items)
    )


# Built-in matchers that a result which was read back names well enough to ask them again.
_NAMED = ("text", "contains", "id", "metadata", "coverage")


def _known_matcher(evidence: Evidence, position: int, signature: str) -> Matcher | None:
    """Return what decides about a query, held or named by the signature."""
    matcher = evidence.matcher
    if matcher is None and signature.partition("(")[0] in _NAMED:
        try:
            matcher = resolve_matcher(signature)
        except (InvalidInput, InvalidType):
            return None  # it has a tokenizer, or something else, of the user's own
    if matcher is None or evidence.texts is None or matcher._for_ground_truth([]) is matcher:
        return matcher
    items = evidence.texts.ground_truth(position)
    return matcher._for_ground_truth([text_of(one) for several in items for one in several])


def _reads_letters(matcher: Matcher | None) -> bool:
    """Tell whether a matcher compares letters, whatever the spaces between them."""
    parts = getattr(matcher, "parts", (matcher,))
    return any(getattr(part, "tokenizer", None) is letter_tokens for part in parts)


_KINDS: Mapping[type[Matcher], Literal["text", "contains", "id", "metadata"]] = {
    ExactTextMatcher: "text",
    ContainsMatcher: "contains",
    IdMatcher: "id",
    MetadataMatcher: "metadata",
}


def _keys_missed(
    matcher: Matcher | None,
    documents: Sequence[PredictedDocument],
    _: int,
    item: GroundTruthItem,
) -> NearMiss | None:
    """Return what a matcher that decides by equality did not find."""
    kind = _KINDS.get(type(matcher))  # type: ignore[arg-type]
    if kind is None:
        return None
    pairs = product(item.alternatives or (), documents) if kind == "text" else ()
    differing = [
        (len(but_for), document.rank, but_for, text, document.text)
        for text, document in pairs
        if document.text is not None and (but_for := _difference(text, document.text))
    ]
    if not differing:
        return NearMiss(kind)
    _, rank, but_for, text, other = min(differing)
    would = [
        name
        for name in ("contains", "coverage")
        if (one := resolve_matcher(name)).similarity(text, other) >= one.threshold
    ]
    return NearMiss(kind, rank=rank, but_for=but_for, matchers=tuple(would))


_FOLDINGS: Mapping[str, Callable[[str], str]] = {
    N_("Unicode form"): partial(unicodedata.normalize, "NFKC"),
    N_("case"): str.casefold,
    N_("punctuation"): lambda text: "".join(
        one for one in text if not unicodedata.category(one).startswith("P")
    ),
    N_("white space"): lambda text: "".join(text.split()),
}


def _difference(first: str, second: str) -> tuple[str, ...]:
    """Return the fewest things that two texts differ in, if they differ in nothing else.

    >>> _difference("Opening hours", "opening  hours"), _difference("１４ days", "14 days.")
    (('case', 'white space'), ('Unicode form', 'punctuation'))
    >>> _difference("a", "b"), _difference("a", "a")
    ((), ())
    """

    def alike(foldings: Iterable[str]) -> bool:
        one, other = (
            reduce(lambda text, name: _FOLDINGS[name](text), foldings, text)
            for text in (first, second)
        )
        folded = unicodedata.normalize("NFC", one)
        return bool(folded) and folded == unicodedata.normalize("NFC", other)

    if not alike(_FOLDINGS):
        return ()
    sizes = range(len(_FOLDINGS) + 1)
    several = (some for size in sizes for some in combinations(_FOLDINGS, size))
    return next(filter(alike, several), ())


class _RunsMissed:
    """What documents have in common with items that they share no run of words with."""

    def __init__(
        self,
        matcher: CoverageMatcher,
        pieces: Pieces | None,
        documents: Sequence[PredictedDocument],
    ) -> None:
        self.matcher, self.pieces = matcher, pieces
        # Of a class of the user's own, nobody knows what a similarity of 0 means.
        self.is_own = type(matcher).block_scorer is not CoverageMatcher.block_scorer
        self.documents = [
            (one.rank, set(self._tokens(one.text))) for one in documents if one.text is not None
        ]

    def _tokens(self, text: str) -> Sequence[str]:
        return self.matcher.tokenizer(text)

    def of(self, place: int, item: GroundTruthItem) -> NearMiss | None:
        """Return what an item has in common with the documents; its place is among the items."""
        if self.pieces is None or self.is_own:
            return None
        sizes = self.pieces.alternative_tokens[self.pieces.alternative_item == place]
        run = min(self.matcher.min_run, int(sizes.max(initial=0)))
        if run == 0:
            return NearMiss("no words")
        name = tokenizer_name(self.matcher.tokenizer, marked=False)
        near = NearMiss(
            "numbers" if self.matcher.numbers else "run",
            run,
            "characters" if name in _CHARACTERS else "words" if name in _WORDS else "tokens",
        )
        if item.alternatives is None:
            return near
        shared = [
            (len(words & of_document), -rank, len(words))
            for words in (set(self._tokens(text)) for text in item.alternatives)
            for rank, of_document in self.documents
        ]
        most, rank, tokens = max(shared, key=lambda one: one[:2])
        return replace(near, shared=most, tokens=tokens, rank=-rank if most else None)


# Tokenizers that take a text apart into words.
_WORDS = ("words", "unicode", "rouge_score", "whitespace")
_CHARACTERS = ("character", "letters")


def _together(item: GroundTruthItem) -> str:
    """Say which ranks hold how much together; rounded down, so that a miss never looks like 100 %.

    >>> item = GroundTruthItem(1, 1.0, "found in pieces", 4, 4, None, 0.92, 0.0, 1, None, (1, 3, 4))
    >>> _together(item)
    'ranks 1, 3 and 4 together hold 92 %'
    """
    if not item.pieces:
        return ""
    *others, last = map(str, item.pieces)
    share = whole_percent(item.similarity)
    together = _("ranks {others} and {last} together hold {share} %")
    return together.format(others=", ".join(others), last=last, share=share)


def _short_by(shortfall: float) -> str:
    """Round, but not to nothing: a near miss is a miss.

    >>> _short_by(0.19), _short_by(0.00001)
    ('0.1900', '1e-05')
    """
    return f"{shortfall:.4f}" if shortfall >= 0.00005 else f"{shortfall:.0e}"


def _highlighted(
    explanation: Explanation, *, full: bool = False
) -> tuple[dict[int, tuple[Excerpt, ...]], dict[int, tuple[Excerpt, ...]]]:
    """Return the excerpts to show, per rank and per item, highlighted where partners agree.

    A document is compared with the item it is most similar to, an item with the document that
    covers it first or comes nearest.
    """
    documents = {d.rank: d for d in explanation.documents}
    items = {i.number: i for i in explanation.items}
    if full:
        ranks, numbers = list(documents), list(items)
    else:
        ranks = _to_show(documents, [r for i in explanation.items for r in _partners(i)])
        numbers = _to_show(items, [d.closest for d in explanation.documents])
    # A partner need not be shown itself.
    all_ranks = {*ranks, *(rank for number in numbers for rank in _partners(items[number]))}
    held = {rank: {documents[rank].closest, *documents[rank].piece_of} - {None} for rank in ranks}
    marked = partial(_marked, by_letters=explanation.by_letters)
    all_numbers = {*numbers, *(number for rank in ranks for number in held[rank])}
    by_rank = {r: _excerpts((d.text,), full) for r, d in documents.items() if r in all_ranks}
    by_number = {n: _excerpts(i.alternatives, full) for n, i in items.items() if n in all_numbers}
    return (
        {
            r: marked(by_rank[r], [by_number.get(number or 0, ()) for number in held[r]])
            for r in ranks
        },
        {
            n: marked(by_number[n], [by_rank.get(rank, ()) for rank in _partners(items[n])])
            for n in numbers
        },
    )


def _to_show(numbered: Iterable[int], spoken_of: Iterable[int | None]) -> list[int]:
    """Return the first ones, and of the others those that something shown speaks of."""
    everything = sorted(numbered)
    wanted = {number for number in spoken_of if number is not None} - set(everything[:_SHOWN])
    return everything[:_SHOWN] + sorted(wanted)[: _SHOWN_AT_MOST - _SHOWN]


def _excerpts(texts: Iterable[str | None] | None, full: bool = False) -> tuple[Excerpt, ...]:
    known = [text for text in texts or () if text is not None]
    chosen = known if full else known[:_ALTERNATIVES]
    shown = [Excerpt.of(t, whole=full) if t.strip() else Excerpt(_("(blank)")) for t in chosen]
    if len(known) > len(chosen):
        more = _("(… and {} more alternatives)").format(len(known) - len(chosen))
        shown.append(Excerpt(more))
    return tuple(shown)


def _marked(
    excerpts: Sequence[Excerpt], partners: Sequence[Sequence[Excerpt]], *, by_letters: bool
) -> tuple[Excerpt, ...]:
    """Highlight where each excerpt agrees with each partner, in whichever of its texts most."""

    def spans(text: str) -> Iterator[tuple[int, int]]:
        for several in partners:
            found = (agreement(text, one.text, by_letters=by_letters) for one in several)
            yield from max(found, key=lambda some: sum(b - a for a, b in some), default=())

    marked = ((one, united(spans(one.text))) for one in excerpts)
    return tuple(replace(one, spans=found) if found else one for one, found in marked)
