"""Labels that survive re-chunking: where each ground truth of a data set stands in a new index."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from krag_eval._doors import Shown
from krag_eval._language import Language, _, language, spoken
from krag_eval._text import agreement
from krag_eval.datasets.audit import Chunks, Held, Reader, held_in, names_in, readers_of
from krag_eval.datasets.dataset import Dataset
from krag_eval.datasets.loading import ChunkSource, dataset_in
from krag_eval.documents import (
    AnyOf,
    DocumentLike,
    Item,
    content_key,
    id_of,
    is_blank,
    metadata_of,
    single,
    text_of,
)
from krag_eval.errors import Advice, InvalidInput, clipped, one_of, warn_of
from krag_eval.matching.contradiction import SaidOtherwise
from krag_eval.matching.coverage import CoverageMatcher
from krag_eval.matching.plaintext import plain
from krag_eval.matching.tokenizers import letter_tokens
from krag_eval.statistics.gates import Gate, GateReport

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.datasets.loading import Source

#: What can have become of a ground truth, the best first.
STATES = ("unchanged", "moved", "absorbed", "split", "changed", "gone")
#: What plain texts of the ground truth are.
By: TypeAlias = Literal["auto", "id", "text"]

_MATCHER = CoverageMatcher()
# Metadata of a piece: the whole text, so that the next index is searched for that.
_PASSAGE = "passage"
# How many times as long as the gap before it a span must be to belong to the same stretch.
_NEAR = 4
# Words, or letters, with the punctuation behind them.
_WORD, _LETTER = re.compile(r"\S+"), re.compile(r"\w[^\w\s]*")


class Anchored(NamedTuple):
    """Where one ground truth stood, and where it stands; of interchangeable ones, the best.

    Attributes:
        query: The label of its query.
        position: The position of its query, from 0.
        item: Its place in the query's list of ground truth, from 1.
        state: One of ``"unchanged"``, ``"moved"``, ``"absorbed"``, ``"split"``, ``"changed"``,
            ``"gone"``.
        old: The ids of the chunks in the old index; empty if not known.
        new: Those in the new one: of a split one, of its pieces in their order.
        alternatives: Other new chunks that hold it as well.
        share: How much of its words the new chunks hold; of a changed one, the chunk that says
            otherwise.
        text: What was looked for.
        against: The id of a new chunk that says otherwise; ``None`` if none does.
        said: What that chunk says otherwise, if it is known.
    """

    query: str | int
    position: int
    item: int
    state: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    alternatives: tuple[str, ...]
    share: float
    text: str
    against: str | None = None
    said: SaidOtherwise | None = None


@dataclass(frozen=True, repr=False)
class Reanchored(Shown):
    """Where the ground truth of a data set stands in a new index; made by :func:`reanchor`.

    Attributes:
        rows: One per ground truth, in order.
        dataset: The data set with the ids of the new index, and the texts beside them.
        read_as: What plain texts were taken for, ``"id"`` or ``"text"``; ``""`` without any.
        n_retrieved: For how many queries retrieved documents, which are of the old index, were
            dropped.
        n_unknown: How many ground truths name an id that the old index lacks, and have a text.
        n_strays: How many have a text that the old index, or the chunk they name, does not hold.
        n_chunks: How many chunks the old and the new index have.
        matcher: The signature of the matcher that decides.
    """

    rows: tuple[Anchored, ...]
    dataset: Dataset
    read_as: str = ""
    n_retrieved: int = 0
    n_unknown: int = 0
    n_strays: int = 0
    n_chunks: tuple[int, int] = (0, 0)
    matcher: str = _MATCHER.signature

    @cached_property
    def counts(self) -> dict[str, int]:
        """State -> how many ground truths have it."""
        found = Counter(one.state for one in self.rows)
        return {state: found[state] for state in STATES}

    @property
    def stale(self) -> float:
        """The share of labels that no longer point at what a person read; NaN without labels."""
        n = len(self.rows)
        return 1 - self.counts["unchanged"] / n if n else float("nan")

    @property
    def table(self) -> pd.DataFrame:
        """One row per ground truth, with the fields of :attr:`rows`; several ids in a tuple."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=[*Anchored._fields])

    def check(self, fail_on: str | Iterable[str]) -> GateReport:
        """Check that no ground truth has a state, as in ``check("gone,changed").passed``.

        Args:
            fail_on: States: one, several, or several in a text with commas between.

        Raises:
            InvalidInput: If there is no such state, or none is named.
        """
        told = _("{state}: {n} of {total} ground truths")
        found = {state: self.counts[state] for state in names_in(fail_on, STATES)}
        gates = (Gate(state, n == 0, told.format(state=state, n=n, total=len(self.rows)))
                 for state, n in found.items())  # fmt: skip
        return GateReport(tuple(gates), language=language())

    def to_dict(self) -> dict[str, Any]:
        """Return counts and rows as JSON has them."""
        rows = [{**row._asdict(), "said": row.said and row.said._asdict()} for row in self.rows]
        facts = ("read_as", "n_retrieved", "n_unknown", "n_strays", "n_chunks")
        return {"counts": self.counts, **{one: getattr(self, one) for one in facts}, "rows": rows}


@spoken
def reanchor(
    dataset: Source,
    old: ChunkSource,
    new: ChunkSource,
    *,
    by: By = "auto",
    language: Language | None = None,
) -> Reanchored:
    """Find out where the ground truth of a data set stands after the corpus was cut anew.

    =============  ==============================================================================
    state          what became of a ground truth
    =============  ==============================================================================
    ``unchanged``  the chunk of the same id has the same text
    ``moved``      a chunk of another id has the same text
    ``absorbed``   one chunk of another text holds it, as the matcher ``coverage`` counts
    ``split``      several chunks hold it together
    ``changed``    a chunk has most of its words and says another number, or the opposite
    ``gone``       the new index does not hold it
    =============  ==============================================================================

    What is looked for is a person's own text, or the text that the old index has for the id. Texts
    are the same if coverage reads the same words in them. Where several chunks hold a ground truth,
    one of the same text is chosen, then one that holds it entirely, the smallest of these, the
    first; the others that hold it entirely become interchangeable with it, as an ``AnyOf``.

    Args:
        dataset: A :class:`~krag_eval.datasets.Dataset`, or what :func:`load_dataset` makes one of.
        old: The chunks that the ids of the ground truth are of, as in :func:`audit`.
        new: The chunks of the new index, each with an id.
        by: What plain texts of the ground truth are: ``"id"``, ``"text"``, or ``"auto"``: ids where
            the data set says so, or the old index has all of them as ids.
        language: Of what is told while it runs, ``"en"`` or ``"ko"``.

    Returns:
        What became of each, and the new data set: ids of the new index with the texts beside them,
        one item for each piece of what was split. Without retrieved documents, which are of the old
        index; an id that the new index has for something else is marked, as in ``"7 (gone)"``.

    Raises:
        InvalidInput: If an index has no chunks, or an id more than once, a new chunk has no id, the
            old index lacks ids of ground truth without a text, or all of them, or plain texts may
            be ids or texts.
        InvalidType: If the data set or an index is nothing of the kind.
        DatasetError: If a file cannot be read.

    Warns:
        KragEvalWarning: If a text is not in the chunk that its id names, or an id is unknown.

    >>> dataset = Dataset(["q"], [["7"]], questions=["When does it open?"])
    >>> found = reanchor(dataset, [{"id": "7", "text": "It opens at nine."}],
    ...                  [{"id": "0", "text": "Welcome. It opens at nine. Come in."}])
    >>> found.rows[0].state, found.dataset.actual
    ('absorbed', [[{'id': '0', 'page_content': 'It opens at nine.'}]])
    """
    one_of("by", by, get_args(By))
    data, before, after = dataset_in(dataset), _index(old, "old"), _index(new, "new")
    if None in after.ids:
        where = f"[{after.ids.index(None)}]"
        raise InvalidInput("new", "has no id, which labels could name", within=where)
    read_as = _read_as(data, by, before)
    case = _Case(_labels(data, before, read_as), before, after)
    rows, actual = list[Anchored](), list[list[Item]]([] for _ in data.actual)
    for several in case.truths:
        outcomes = [case.outcome(label, data.queries[label.query]) for label in several]
        best = min(outcomes, key=lambda one: STATES.index(one.row.state))
        rows.append(best.row)
        actual[best.row.position] += _items(best, [one for one in outcomes if one is not best])
    made = replace(data, actual=actual, predicted=None, failures=())
    n_retrieved, n_chunks = len(data.predicted or ()), (len(before.ids), len(after.ids))
    counts = n_retrieved, case.n_unknown, case.n_strays, n_chunks
    return Reanchored(tuple(rows), made, read_as, *counts)


def _index(chunks: Any, name: str) -> Chunks:
    """Return the chunks of an index, in which an id names one chunk."""
    made = Chunks(() if chunks is None else chunks, None, name)
    repeated = [one for one, n in Counter(filter(None, made.ids)).items() if n > 1]
    if repeated:
        problem = f"has {len(repeated)} ids more than once, such as {clipped(repeated[0])}"
        raise InvalidInput(name, problem, "an id must name one chunk")
    return made


def _read_as(data: Dataset, by: By, old: Chunks) -> str:
    """Return what plain texts of the ground truth are; empty if there are none."""
    documents = (one for items in data.actual for one in single(items))
    texts = {one for one in documents if isinstance(one, str)}
    known = texts & old.by_id.keys()
    if not texts or by != "auto":
        return by if texts else ""
    if data.defaults.get("matcher") == "id" or len(known) == len(texts):
        return "id"
    if known:
        problem = f": of its {len(texts)} different plain texts, {len(known)} are ids of the old "
        fix = Advice("say what they are by {} or {}", by=("id", "text"))
        raise InvalidInput("dataset", f"{problem}index and the others are not", fix)
    return "text"


# What is looked for


class _Label(NamedTuple):
    """A ground truth, or one of several that are interchangeable.

    Attributes:
        query: Position of its query.
        item: Number of its item within the query, from 1.
        documents: What the data set has of it: one document, or its pieces.
        ids: The ids that it names.
        text: What is looked for.
        is_own: Whether that is its own text, and not that of the old chunk.
    """

    query: int
    item: int
    documents: Sequence[DocumentLike]
    ids: tuple[str, ...]
    text: str
    is_own: bool

    def written(self, identity: str | None, part: str | None = None) -> DocumentLike:
        """Return it as a document of the new data set, or a part of it."""
        own = dict(metadata_of(self.documents[0]))
        if _passage(self.documents[0]):
            own.pop(_PASSAGE)
        elif part is not None and _PASSAGE in own:
            problem = f"has metadata {_PASSAGE!r}, where a piece has the whole text"
            raise InvalidInput("dataset", problem, "give it another name", query=self.query)
        metadata = own if part is None else {**own, _PASSAGE: self.text}
        named = {} if identity is None else {"id": identity}
        content = {"page_content": self.text if part is None else part}
        return {**named, **content, **({"metadata": metadata} if metadata else {})}


def _passage(document: DocumentLike) -> str | None:
    """Return the whole text, of a piece that :func:`reanchor` made."""
    whole = metadata_of(document).get(_PASSAGE)
    if not isinstance(whole, str) or is_blank(text_of(document)):
        return None
    return whole if text_of(document) in plain(whole) else None


def _labels(data: Dataset, old: Chunks, read_as: str) -> list[list[_Label]]:
    """Return the ground truths, each with its alternatives.

    Raises:
        InvalidInput: If ids without a text are not in the old index, or no id is.
    """
    truths, unknown = list[list[_Label]](), dict[str, None]()
    for query, items in enumerate(data.actual):
        for item, documents in _gathered(items):
            labels = [_label(query, item, one, old, read_as) for one in documents]
            truths.append(labels)
            unknown |= {one.ids[0]: None for one in labels if one.ids and is_blank(one.text)}
    named = {identity for labels in truths for one in labels for identity in one.ids}
    fix = "pass the index that the ids of the ground truth are of"
    if named and named.isdisjoint(old.by_id):
        problem = f"has none of the {len(named)} ids of the ground truth, such as "
        raise InvalidInput("old", problem + clipped(min(named)), fix)
    if unknown:
        shown = ", ".join(map(clipped, [*unknown][:5]))
        problem = f"has no text for {len(unknown)} of the {len(named)} ids of the ground truth, "
        raise InvalidInput("old", f"{problem}which have no text of their own: {shown}", fix)
    return truths


def _gathered(items: Sequence[Item]) -> Iterator[tuple[int, list[list[DocumentLike]]]]:
    """Yield the items of a query, by alternatives; the pieces of one passage are one document."""
    found: dict[Hashable, tuple[int, dict[Hashable, list[DocumentLike]]]] = {}
    for number, item in enumerate(items, 1):
        documents = [*single([item])]
        key: Hashable = next(filter(None, map(_passage, documents)), number)
        several = found.setdefault(key, (number, {}))[1]
        for one in documents:
            if whole := _passage(one):
                several.setdefault(whole, []).append(one)
            else:
                several[content_key(one)] = [one]
    for number, several in found.values():
        yield number, [*several.values()]


def _label(
    query: int, item: int, documents: Sequence[DocumentLike], old: Chunks, read_as: str
) -> _Label:
    """Return what is known of a ground truth."""
    texts_alone = isinstance(documents[0], str) and read_as == "text"
    named = () if texts_alone else tuple(filter(None, map(id_of, documents)))
    text = _passage(documents[0]) or text_of(documents[0])
    if text in named:  # plain ids, also those that carry a grade
        text = ""
    if is_own := not is_blank(text) or not named:
        return _Label(query, item, documents, named, text, is_own)
    text = old.texts[old.by_id[named[0]]] if named[0] in old.by_id else ""
    return _Label(query, item, documents, named, text, is_own)


# Where it stands


class _Anchor(NamedTuple):
    """A chunk of the old index that a label stands for: its id, the label's part, its text."""

    identity: str | None
    part: str
    text: str


class _Outcome(NamedTuple):
    """What became of a label, and how it is written: as a whole, and in pieces if there are any."""

    row: Anchored
    documents: Sequence[DocumentLike]
    pieces: Sequence[DocumentLike]


class _Case:
    """The ground truth between two indexes.

    Attributes:
        truths: The ground truths, each with its alternatives.
        n_unknown, n_strays: As of :class:`Reanchored`.
    """

    def __init__(self, truths: list[list[_Label]], old: Chunks, new: Chunks) -> None:
        self.truths, self.old, self.new = truths, old, new
        labels = [one for several in truths for one in several]
        texts, doubtful = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
        for one in labels:
            texts[one.query].append(one.text)
            known = [old.texts[old.by_id[name]] for name in one.ids if name in old.by_id]
            if one.is_own and (len(one.ids) != 1 or [one.text] != known != []):
                doubtful[one.query].append(one.text)
        self.readers = readers_of(_MATCHER, texts, [*old.texts, *new.texts])
        self.held = held_in(new.texts, texts, self.readers)
        self.held_before = held_in(old.texts, doubtful, self.readers) if doubtful else {}
        self.anchors = {id(one): self._anchored(one) for one in labels}
        self.n_unknown = sum(bool(one.ids) and one.ids[0] not in old.by_id for one in labels)
        self.n_strays = sum(not anchors for anchors in self.anchors.values())
        self._check(len(labels))

    def _check(self, n: int) -> None:
        """Warn of labels that are not of the old index; refuse one that has none of them."""
        if n and self.n_strays == n:
            problem = f"holds none of the {n} texts of the ground truth"
            raise InvalidInput("old", problem, "pass the index that the ground truth was made of")
        unknown = _("{} ground-truth documents name ids that the old index lacks; their own texts "
                    "were looked for.")  # fmt: skip
        strays = _("{} ground-truth documents have texts that are not in the old chunks they name, "
                   "or nowhere in the old index.")  # fmt: skip
        warn_of(unknown, self.n_unknown)
        warn_of(strays, self.n_strays)

    def _anchored(self, label: _Label) -> list[_Anchor]:
        """Return the old chunks that a label stands for; none if they do not hold its text."""
        old, named = self.old, list[_Anchor]()
        for identity, one in zip(label.ids, filter(id_of, label.documents), strict=False):
            text = old.texts[old.by_id[identity]] if identity in old.by_id else label.text
            part = text_of(one) if len(label.ids) > 1 else label.text
            named.append(_Anchor(identity, part, text))
        held = self.held_before.get((label.query, label.text))
        if held is None:
            return named
        whole, pieces, _share = self._standing(label, old, held, [label.text])
        if len(named) == 1:
            return named if old.by_id[label.ids[0]] in whole else []
        if named:
            return named if whole or pieces else []
        found = pieces or [(at, label.text) for at in [*whole][:1]]
        return [_Anchor(old.ids[at], part, old.texts[at]) for at, part in found]

    def _standing(
        self, label: _Label, chunks: Chunks, held: Held, same: Sequence[str]
    ) -> tuple[dict[int, float], list[tuple[int, str]], float]:
        """Return where a text stands in an index.

        Returns:
            The chunks that hold it alone, the best first, with the share that each holds; if there
            are none, those that hold it together, in order, each with its part; and how much of it
            the first of them, or all chunks together, hold.
        """
        reader, whole = self.readers[label.query], dict.fromkeys(chunks.same_as(label.text), 1.0)
        for text, share in held.by.items():
            whole |= dict.fromkeys(chunks.same_as(text), share)

        def place(at: int) -> tuple[bool, float, int, int]:
            text = chunks.texts[at]
            return not _in(reader, text, same), -whole[at], reader.size(text), at

        if whole:
            order = sorted(whole, key=place)
            return {at: whole[at] for at in order}, [], whole[order[0]]
        share, parts = held.tokens / max(reader.size(label.text), 1), list[tuple[str, str]]()
        if share >= _MATCHER.threshold:
            parts = _parts(label.text, held.pieces, reader)
        return {}, [(chunks.same_as(chunk)[0], part) for chunk, part in parts], share

    def outcome(self, label: _Label, query: str | int) -> _Outcome:
        """Find out what became of a label."""
        reader, new, anchors = self.readers[label.query], self.new, self.anchors[id(label)]
        held, against = self.held[label.query, label.text], ""
        same = [label.text, *(one.text for one in anchors if len(anchors) == 1)]
        whole, pieces, share = self._standing(label, new, held, same)
        stays = [new.by_id[one.identity] for one in anchors if one.identity in new.by_id
                 and _in(reader, new.texts[new.by_id[one.identity]], [one.text])]  # fmt: skip
        if anchors and len(stays) == len(anchors):
            state, whole = "unchanged", {at: whole.get(at, 1.0) for at in [*stays, *whole]}
            if len(stays) > 1:
                pieces = [(at, one.part) for at, one in zip(stays, anchors, strict=True)]
        elif whole:
            state = "moved" if _in(reader, new.texts[next(iter(whole))], same) else "absorbed"
        else:
            state = "split" if pieces else "changed" if held.uncounted else "gone"
            against = max(held.uncounted, key=held.uncounted.__getitem__, default="")
        ids = {at: new.ids[at] or "" for at in (*whole, *dict(pieces))}
        chosen = [at for at, _part in pieces] or [*whole][:1]
        row = Anchored(
            query,
            label.query,
            label.item,
            state,
            label.ids or tuple(one.identity for one in anchors if one.identity),
            tuple(ids[at] for at in chosen),
            tuple(ids[at] for at in whole if at not in chosen),
            held.uncounted[against] if state == "changed" else share,
            label.text,
            new.ids[new.same_as(against)[0]] if against else None,
            reader.matcher.said_otherwise(label.text, against) if against else None,
        )
        names: list[str | None] = [ids[at] for at in whole if at in chosen or whole[at] == 1.0]
        if pieces or not whole:
            names = [self._freed(label, "split" if pieces else state)]
        documents = [label.written(one) for one in names]
        return _Outcome(row, documents, [label.written(ids[at], part) for at, part in pieces])

    def _freed(self, label: _Label, state: str) -> str | None:
        """Return an id of what does not stand in one chunk, which is no new chunk's."""
        identity = next(iter(label.ids), None)
        while identity in self.new.by_id:
            identity = f"{identity} ({state})"
        return identity


def _in(reader: Reader, text: str, same: Sequence[str]) -> bool:
    """Return whether a text is one of some, up to what coverage folds."""
    words = reader.words(text)
    return text in same or (bool(words) and words in map(reader.words, same))


def _parts(text: str, chunks: Mapping[str, float], reader: Reader) -> list[tuple[str, str]]:
    """Return the chunks that hold a text together, as few as it takes, each with its part.

    The one that adds most comes next, until none adds as much as a run. Parts are in order, and
    without markup.
    """
    text, by_letters = plain(text), reader.matcher.tokenizer is letter_tokens
    units = [one.span() for one in (_LETTER if by_letters else _WORD).finditer(text)]
    ends = [end for _start, end in units]
    masks, left = dict[str, int](), (1 << len(units)) - 1
    for chunk in chunks:
        if spans := agreement(text, plain(chunk), by_letters=by_letters):
            start, stop = _stretch(spans)
            masks[chunk] = (2 << bisect_left(ends, stop)) - (1 << bisect_right(ends, start))
    chosen = list[tuple[int, int, str]]()
    while masks:
        chunk = max(masks, key=lambda one: (masks[one] & left).bit_count())
        mask = masks.pop(chunk)
        if (mask & left).bit_count() < reader.matcher.min_run:
            break
        left &= ~mask
        chosen.append(((mask & -mask).bit_length() - 1, mask.bit_length() - 1, chunk))
    found = [(chunk, text[units[a][0] : units[b][1]]) for a, b, chunk in sorted(chosen)]
    # Where only coverage sees through how they are written, the chunk that holds most.
    return found or [(max(chunks, key=chunks.__getitem__), text)]


def _stretch(spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return from where to where a chunk has a text: its longest span, and what is near by.

    A short span that is far off, such as a common phrase, is none of it.

    >>> _stretch([(0, 40), (45, 99)]), _stretch([(0, 15), (22, 99)])
    ((0, 99), (22, 99))
    """
    longest = max(range(len(spans)), key=lambda at: spans[at][1] - spans[at][0])
    start, stop = spans[longest]
    for begin, end in spans[longest + 1 :]:
        stop = end if _NEAR * (begin - stop) <= end - begin else stop
    for begin, end in reversed(spans[:longest]):
        start = begin if _NEAR * (start - end) <= end - begin else start
    return start, stop


# How it is written


def _items(best: _Outcome, others: Sequence[_Outcome]) -> Iterator[Item]:
    """Yield the items of a ground truth: one, or one for each of its pieces."""
    beside = [document for one in others for document in one.documents]
    heads: list[Sequence[DocumentLike]] = [[one] for one in best.pieces]
    for several in heads or [best.documents]:
        distinct = {content_key(one): one for one in (*several, *beside)}
        documents = [*distinct.values()]
        yield documents[0] if len(documents) == 1 else AnyOf(documents)
