"""Labels that survive re-chunking: where each ground truth of a data set stands in a new index."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, compress, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from krag_eval.auditing.audit import Chunks, Held, Reader, held_in, names_in, readers_of
from krag_eval.comparison.gates import Gate, GateReport
from krag_eval.core import (
    LISTS,
    Advice,
    AnyOf,
    CoverageMatcher,
    DocumentLike,
    InvalidInput,
    Language,
    SaidOtherwise,
    Shown,
    _,
    clipped,
    id_of,
    is_blank,
    letter_tokens,
    metadata_of,
    one_of,
    single,
    spoken,
    text_of,
)
from krag_eval.core.documents import Item, content_key
from krag_eval.core.errors import warn_of
from krag_eval.core.language import language
from krag_eval.core.matching.plaintext import plain
from krag_eval.core.text import agreement
from krag_eval.datasets import Dataset, dataset_in
from krag_eval.loading.loading import ChunkSource

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.loading.loading import Source

#: What can have become of a ground truth, the best first.
STATES = ("unchanged", "moved", "absorbed", "split", "changed", "gone")
#: What plain texts of the ground truth are.
By: TypeAlias = Literal["auto", "id", "text"]

#: What reads the texts.
MATCHER = CoverageMatcher()
# Metadata of a piece: the whole text, so that the next index is searched for that.
_PASSAGE = "passage"
# Letters that a chunk shares at least with the one before, where the two overlap.
_OVERLAP = 20
# What coverage counts, the punctuation behind it, and all up to the next.
_WORD, _LETTER = re.compile(r"[^\W_]+"), re.compile(r"[^\W_]")
_DIGITS = re.compile(r"\d\d")
_BEHIND, _BETWEEN = re.compile(r"[^\w\s]*"), re.compile(r"[\W_]*")


class Anchored(NamedTuple):
    """Where one ground truth stood, and where it stands; of interchangeable ones, the best.

    Attributes:
        query: The label of its query.
        position: The position of its query, from 0.
        item: Its place in the query's list of ground truth, from 1.
        state: One of ``"unchanged"``, ``"moved"``, ``"absorbed"``, ``"split"``, ``"changed"``,
            ``"gone"``.
        old: The ids that it names; empty if it is a text alone.
        new: Those of the chunks in the new index: of a split one, of its pieces in their order.
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

    @property
    def holds(self) -> bool:
        """Whether the label, left as it is, still points at what a person read."""
        there = {*self.old} <= {*self.new, *self.alternatives}
        in_no_more = 0 < len(self.new) <= max(len(self.old), 1)
        return self.state == STATES[0] or (there and in_no_more)


@dataclass(frozen=True, repr=False)
class Reanchored(Shown):
    """Where the ground truth of a data set stands in a new index; made by :func:`reanchor`.

    Attributes:
        rows: One per ground truth, in order.
        dataset: The data set with the ids of the new index, and the texts beside them.
        read_as: What plain texts were taken for, ``"id"`` or ``"text"``; ``""`` without any.
        left_out: The lists of the data set that name chunks of the old index and were dropped.
        n_strays: How many ground truths have a text that does not stand in the old index where
            they say; an id that this lacks says nothing.
        n_chunks: How many chunks the old and the new index have.
    """

    rows: tuple[Anchored, ...]
    dataset: Dataset
    read_as: str = ""
    left_out: tuple[str, ...] = ()
    n_strays: int = 0
    n_chunks: tuple[int, int] = (0, 0)

    @cached_property
    def counts(self) -> dict[str, int]:
        """State -> how many ground truths have it."""
        found = Counter(one.state for one in self.rows)
        return {state: found[state] for state in STATES}

    @property
    def n_stale(self) -> int:
        """How many labels no longer point at what a person read.

        A label that names ids does where their chunks hold its text, and one that is a text where
        one chunk does.
        """
        return sum(not one.holds for one in self.rows)

    @property
    def stale(self) -> float:
        """The share of these; NaN without labels."""
        return self.n_stale / len(self.rows) if self.rows else float("nan")

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
        facts = ("read_as", "left_out", "n_strays", "n_chunks")
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
    ``split``      several chunks hold it together, or it begins in one and ends in the next
    ``changed``    a chunk has most of its words and says another number, or the opposite
    ``gone``       the new index does not hold it
    =============  ==============================================================================

    What is looked for is a person's own text, or the text that the old index has for the id. Texts
    are the same if coverage reads the same words in them. Where several chunks hold a ground truth,
    one of the same text is chosen, then one that holds it entirely, the shortest of these, the
    first; the others that hold it entirely become interchangeable with it, as an ``AnyOf``. Of a
    text shorter than a run, the one that has most words of its old chunk is chosen, alone. One that
    is unchanged stays as it is. Of a text that stands in more than a hundred chunks, not all
    may be found.

    Args:
        dataset: A :class:`~krag_eval.datasets.Dataset`, or what :func:`load_dataset` makes one of.
        old: The chunks that the ids of the ground truth are of, as in :func:`audit`.
        new: The chunks of the new index, each with an id.
        by: What plain texts of the ground truth are: ``"id"``, ``"text"``, or ``"auto"``: ids where
            the data set says so, or the old index has all of them as ids.
        language: Of what is told while it runs, ``"en"`` or ``"ko"``.

    Returns:
        What became of each, and the new data set: ids of the new index with the texts beside them,
        one item for each piece of what was split. Without what was retrieved, cited, judged or
        unwanted by ids, which are of the old index; an id that the new index has for something else
        is marked, as in ``"7 (gone)"``.

    Raises:
        InvalidInput: If an index has no chunks, or an id more than once, a new chunk has no id, a
            ground truth has neither a text nor an id that the old index knows, neither index holds
            any, or plain texts may be ids or texts.
        InvalidType: If the data set or an index is nothing of the kind.
        DatasetError: If a file cannot be read.

    Warns:
        KragEvalWarning: If texts do not stand in the old chunks that their ids name.

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
    case = _Case(data, before, after, read_as)
    rows, actual = list[Anchored](), list[list[Item]]([] for _ in data.actual)
    for several in case.truths:
        outcomes = sorted(map(case.outcome, several), key=lambda one: STATES.index(one.row.state))
        rows.append(outcomes[0].row)
        actual[rows[-1].position] += _items(*outcomes)
    are_lost = read_as == "text" or {one.state for one in rows} == {"gone"}
    if 0 < case.n_strays == len(case.anchors) and are_lost:
        problem = f"holds none of the {case.n_strays} texts of the ground truth"
        raise InvalidInput("old", problem, "pass the index that the ground truth was made of")
    strays = _("{} ground-truth documents have texts that are not in the old chunks they name, or "
               "nowhere in the old index; the texts were looked for.")  # fmt: skip
    warn_of(strays, case.n_strays)
    left_out = tuple(_of_chunks(data, read_as))
    dropped: dict[str, Any] = dict.fromkeys(left_out)
    # Ids alone were compared as texts; beside the texts they are compared by name.
    defaults = {**({"matcher": "id"} if read_as == "id" else {}), **data.defaults}
    made = replace(data, actual=actual, failures=(), run=(), defaults=defaults, **dropped)
    counts = case.n_strays, (len(before.ids), len(after.ids))
    return Reanchored(tuple(rows), made, read_as, left_out, *counts)


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


def _of_chunks(data: Dataset, read_as: str) -> Iterator[str]:
    """Yield the lists of a data set that are of the old index."""
    for name in ("predicted", *LISTS, "judged"):
        lists = getattr(data, name)
        named = (_id_of(one, read_as) for of_query in lists or () for one in of_query or ())
        # Texts that were judged, or are unwanted, are so in any index.
        if lists is not None and (name in ("predicted", "cited") or any(named)):
            yield name


def _id_of(document: DocumentLike, read_as: str) -> str | None:
    """Return the id that a document names; a plain text may be none."""
    return None if isinstance(document, str) and read_as == "text" else id_of(document) or None


# The parts of a text in order, each with the chunks that hold it, the best first, and how much of
# it they do. A text that stands in one chunk is a single part.
_Parts: TypeAlias = "list[tuple[str, dict[int, float]]]"


# What is looked for


class _Label(NamedTuple):
    """A ground truth, or one of several that are interchangeable.

    Attributes:
        query: Position of its query.
        item: Number of its item within the query, from 1.
        documents: What the data set has of it, by id: one document, or its pieces.
        text: What is looked for.
        is_own: Whether that is its own text, and not that of the old chunk.
    """

    query: int
    item: int
    documents: Mapping[str | None, DocumentLike]
    text: str
    is_own: bool

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that it names."""
        return tuple(filter(None, self.documents))

    def written(self, identity: str | None, part: str) -> DocumentLike:
        """Return it, or a part of it, as a document of the new data set."""
        document = next(iter(self.documents.values()))
        metadata = dict(metadata_of(document))
        if _passage(document):
            metadata.pop(_PASSAGE)
        if part != self.text:
            if _PASSAGE in metadata:
                problem = f"has metadata {_PASSAGE!r}, where a piece has the whole text"
                raise InvalidInput("dataset", problem, "give it another name", query=self.query)
            metadata[_PASSAGE] = self.text
        named = {} if identity is None else {"id": identity}
        return {**named, "page_content": part, **({"metadata": metadata} if metadata else {})}


def _passage(document: DocumentLike) -> str | None:
    """Return the whole text, of a piece that :func:`reanchor` made."""
    whole = metadata_of(document).get(_PASSAGE)
    if not isinstance(whole, str) or is_blank(text_of(document)):
        return None
    return whole if text_of(document) in plain(whole) else None


def _labels(data: Dataset, old: Chunks, read_as: str) -> list[list[_Label]]:
    """Return the ground truths, each with its alternatives; pieces of one passage are one again.

    Raises:
        InvalidInput: If there is nothing to look for.
    """
    truths = list[list[_Label]]()
    for query, items in enumerate(data.actual):
        found: dict[Hashable, tuple[int, dict[Hashable, dict[str | None, DocumentLike]]]] = {}
        for number, item in enumerate(items, 1):
            documents = [*single([item])]
            key: Hashable = next(filter(None, map(_passage, documents)), number)
            several = found.setdefault(key, (number, {}))[1]
            for one in documents:
                pieces = several.setdefault(_passage(one) or content_key(one), {})
                pieces[_id_of(one, read_as)] = one
        truths += [[_label(query, number, one, old) for one in several.values()]
                   for number, several in found.values()]  # fmt: skip
    unknown = [label for label in chain(*truths) if is_blank(label.text)]
    for label in unknown:
        if not label.ids:
            problem = f": item {label.item} has neither a text nor an id to look for"
            fix = "leave it out; a span of a source stands, however that is cut"
            raise InvalidInput("dataset", problem, fix, query=label.query)
    if unknown:
        ids = [*dict.fromkeys(label.ids[0] for label in unknown)]
        problem = f"has no text for {len(ids)} ids of the ground truth, which have none of their "
        fix = "pass the index that the ids of the ground truth are of"
        raise InvalidInput("old", f"{problem}own: {', '.join(map(clipped, ids[:5]))}", fix)
    return truths


def _label(
    query: int, item: int, documents: Mapping[str | None, DocumentLike], old: Chunks
) -> _Label:
    """Return what is known of a ground truth."""
    (identity, first), *_pieces = documents.items()
    text = _passage(first) or text_of(first)
    # Plain ids, also those that carry a grade, are no texts.
    is_own = not is_blank(text) and text != identity
    if not is_own:
        text = old.texts[old.by_id[identity]] if identity in old.by_id else ""
    return _Label(query, item, documents, text, is_own)


# Where it stands


@dataclass(frozen=True, eq=False)
class _Search:
    """What an index holds of the ground truth.

    Attributes:
        chunks: The index.
        readers: Query -> what reads its texts.
        held: What the chunks hold of each text, by query and text.
    """

    chunks: Chunks
    readers: Mapping[int, Reader]
    held: Mapping[tuple[int, str], Held]

    def standing(self, label: _Label, same: Sequence[str]) -> tuple[_Parts, float]:
        """Return where a text stands, and how much of it is there.

        First come chunks that read as one of some texts.
        """
        text, texts, reader = label.text, self.chunks.texts, self.readers[label.query]
        held, whole = self.held[label.query, text], dict.fromkeys(self.chunks.same_as(text), 1.0)
        for chunk, share in held.by.items():
            whole |= dict.fromkeys(self.chunks.same_as(chunk), share)
        if whole:
            # So few words stand in many places: what stood around them tells which is meant.
            around = reader.vocabulary(same[-1]) if reader.is_short(text) else set()
            order = sorted(whole, key=lambda at: (
                not _in(reader, texts[at], same), -whole[at],
                -len(around & reader.vocabulary(texts[at])), len(texts[at]), at))  # fmt: skip
            return [(text, {at: whole[at] for at in order})], whole[order[0]]
        share = held.tokens / max(reader.size(text), 1)
        first = list[tuple[str, int]]()
        if share >= MATCHER.threshold:
            parts = _parts(text, held.pieces, reader)
            first = [(part, self.chunks.same_as(one)[0]) for one, part in parts]
        # Its pieces may all be shorter than a run.
        is_written = sum(len(part) for part, _at in first) >= MATCHER.threshold * len(plain(text))
        across = [] if is_written or reader.is_short(text) else self._across(plain(text))
        if across:
            first, share = across, 1.0
        if len(first) == 1:
            first = [(text, first[0][1])]
        return [(part, {at: 1.0}) for part, at in first], share

    @cached_property
    def _letters(self) -> tuple[str, list[int]]:
        """The letters and digits of all chunks, without overlaps, and where those of each end."""
        before, parts = "", list[str]()
        for one in self.chunks.texts:
            letters = "".join(filter(str.isalnum, plain(one)))
            at = before.rfind(letters[:_OVERLAP])
            shared = before[at:] if len(letters) >= _OVERLAP and at >= 0 else ""
            parts.append(letters.removeprefix(shared))
            before = letters
        return "".join(parts), [*accumulate(map(len, parts))]

    def _across(self, text: str) -> list[tuple[str, int]]:
        """Return the parts of a text that stands letter by letter over the ends of chunks.

        What a chunk has of it may be shorter than a run.
        """
        letters, ends = self._letters
        own = [at for at, one in enumerate(text) if one.isalnum()]
        begin = letters.find("".join(text[at] for at in own))
        # 5 is no part of 50.
        edges = begin, begin + len(own)
        if begin < 0 or any(_DIGITS.fullmatch(letters, at - 1, at + 1) for at in edges):
            return []
        chunks = range(bisect_right(ends, begin), bisect_left(ends, begin + len(own)) + 1)
        cuts = [0, *(own[ends[at] - begin] for at in chunks[:-1]), len(text)]
        parts = zip(chunks, pairwise(cuts), strict=True)
        return [(text[start:stop].strip(), at) for at, (start, stop) in parts if start < stop]


def _by_query(labels: Iterable[_Label]) -> dict[int, list[str]]:
    """Return the texts of each query."""
    texts = defaultdict[int, list[str]](list)
    for one in labels:
        texts[one.query].append(one.text)
    return texts


class _Anchor(NamedTuple):
    """A chunk that a label stands for: its id, the label's part, and what the chunk says."""

    identity: str | None
    part: str
    text: str


class _Outcome(NamedTuple):
    """What became of a label: of each part the ids it is written with, and those of the whole."""

    label: _Label
    row: Anchored
    parts: list[tuple[str, list[str | None]]]
    whole: list[str | None]


class _Case:
    """The ground truth between two indexes.

    Attributes:
        truths: The ground truths, each with its alternatives.
        n_strays: As of :class:`Reanchored`.
    """

    def __init__(self, data: Dataset, old: Chunks, new: Chunks, read_as: str) -> None:
        self.queries, self.truths = data.queries, _labels(data, old, read_as)
        labels = [*chain(*self.truths)]
        texts, own = _by_query(labels), _by_query(one for one in labels if one.is_own)
        readers = readers_of(MATCHER, texts, [*old.texts, *new.texts])
        self.new = _Search(new, readers, held_in(new.texts, texts, readers))
        self.old = _Search(old, readers, held_in(old.texts, own, readers))
        self.n_strays = 0
        self.anchors = {id(one): self._anchored(one) for one in labels}

    def _anchored(self, label: _Label) -> list[_Anchor]:
        """Return the old chunks that a label stands for; its own text where they are not known."""
        old, text = self.old.chunks, label.text
        as_named = [_Anchor(one, text, text) for one in label.ids[:1]]
        if not label.is_own:
            return as_named
        found, _share = self.old.standing(label, [text])
        parts, places = [part for part, _at in found], [next(iter(at)) for _part, at in found]
        if label.ids:
            named = [old.by_id.get(one, -1) for one in label.ids]
            is_there = len(found) == 1 and named[0] in found[0][1]
            if len(named) > 1:
                parts, is_there = [*map(text_of, label.documents.values())], bool(found)
            places = named if is_there and -1 not in named else []
        self.n_strays += not places
        return [_Anchor(old.ids[at], part, old.texts[at])
                for part, at in zip(parts, places, strict=False)] or as_named  # fmt: skip

    def outcome(self, label: _Label) -> _Outcome:
        """Find out what became of a label."""
        new, anchors = self.new.chunks, self.anchors[id(label)]
        reader, against = self.new.readers[label.query], ""
        same = [label.text, *(one.text for one in anchors if len(anchors) == 1)]
        parts, share = self.new.standing(label, same)
        holding = parts[0][1] if len(parts) == 1 else {}
        stays = [at for one in anchors if (at := new.by_id.get(one.identity or "", -1)) >= 0
                 and _in(reader, new.texts[at], [one.text])]  # fmt: skip
        if anchors and len(stays) == len(anchors):
            state = "unchanged"
            parts = [(one.part, {at: 1.0}) for one, at in zip(anchors, stays, strict=True)]
        elif holding:
            state = "moved" if _in(reader, new.texts[next(iter(holding))], same) else "absorbed"
        elif parts:
            state = "split"
        else:
            uncounted = self.new.held[label.query, label.text].uncounted
            against = max(uncounted, key=uncounted.__getitem__, default="")
            state, share = ("changed", uncounted[against]) if against else ("gone", share)
        chosen = [next(iter(chunks)) for _part, chunks in parts]
        row = Anchored(
            self.queries[label.query],
            label.query,
            label.item,
            state,
            label.ids,
            tuple(str(new.ids[at]) for at in chosen),
            tuple(str(new.ids[at]) for at in holding if at not in chosen),
            share,
            label.text,
            new.ids[new.same_as(against)[0]] if against else None,
            reader.matcher.said_otherwise(label.text, against) if against else None,
        )
        freed = self._freed(label, "split" if parts else state)
        # Of others that hold it, those that hold all of it, unless that is next to nothing.
        least = 2.0 if reader.is_short(label.text) else 1.0
        written = [(part, [new.ids[at] for at in chunks if at in chosen or chunks[at] >= least])
                   for part, chunks in parts] or [(label.text, [freed])]  # fmt: skip
        return _Outcome(label, row, written, written[0][1] if len(written) == 1 else [freed])

    def _freed(self, label: _Label, state: str) -> str | None:
        """Return an id of what does not stand in one chunk, which is no new chunk's."""
        identity = next(iter(label.ids), None)
        while identity in self.new.chunks.by_id:
            identity = f"{identity} ({state})"
        return identity


def _in(reader: Reader, text: str, same: Sequence[str]) -> bool:
    """Return whether a text is one of some, up to what coverage folds."""
    words = reader.words(text)
    return text in same or (bool(words) and words in map(reader.words, same))


def _parts(text: str, chunks: Mapping[str, float], reader: Reader) -> list[tuple[str, str]]:
    """Return the chunks that hold a text together, as few as it takes, each with its part.

    From its beginning on, the stretch that reaches furthest comes next. Shorter ones than a run are
    left out where the others hold enough. Parts are in order, and without markup.
    """
    text, by_letters = plain(text), reader.matcher.tokenizer is letter_tokens
    stretches = [(start, _end(_BEHIND, text, stop), chunk) for chunk in chunks for start, stop in
                 agreement(text, plain(chunk), by_letters=by_letters)]  # fmt: skip
    stretches.sort(key=itemgetter(0))
    found, at = list[tuple[str, int, int]](), 0
    while rest := [one for one in stretches if one[1] > at]:
        word = _end(_BETWEEN, text, at)
        begin = max(word, rest[0][0])
        _start, stop, chunk = max((one for one in rest if one[0] <= begin), key=itemgetter(1))
        found.append((chunk, at if begin == word else begin, stop))
        at = stop
    token = _LETTER if by_letters else _WORD
    sizes = [len(token.findall(text, begin, stop)) for _chunk, begin, stop in found]
    is_run = [size >= reader.matcher.min_run for size in sizes]
    if sum(compress(sizes, is_run)) >= MATCHER.threshold * len(token.findall(text)):
        found = [*compress(found, is_run)]
    parts = dict[str, tuple[int, int]]()
    for chunk, begin, stop in found:
        parts[chunk] = parts.get(chunk, (begin,))[0], stop
    # Where only coverage sees through how they are written, the chunks that hold most.
    return [(chunk, text[begin:stop].strip()) for chunk, (begin, stop) in parts.items()] or [
        (one, text) for one in sorted(chunks, key=chunks.__getitem__)[-2:]]  # fmt: skip


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that may match nothing ends."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


# How it is written


def _items(best: _Outcome, *others: _Outcome) -> Iterator[Item]:
    """Yield the items of a ground truth, one for each of its parts, beside its alternatives."""
    beside = [one.label.written(name, one.label.text) for one in others for name in one.whole]
    for part, ids in best.parts:
        documents = [*(best.label.written(name, part) for name in ids), *beside]
        distinct = [*{content_key(one): one for one in documents}.values()]
        yield distinct[0] if len(distinct) == 1 else AnyOf(distinct)
