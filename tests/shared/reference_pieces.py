"""What documents hold of passages, together and word by word, as sets of positions.

The specification of coverage as code: nothing here is fast, and nothing of
``krag_eval.core.scoring`` or numpy is used; what follows from the ranks that are relevant is
defined in ``reference``. A text is a list of tokens, an item a list of interchangeable texts. Every
value of a query is worked out from that query alone, at one cutoff.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import reference
from reference import mean, ratio, share

from krag_eval import Conventions

Text = Sequence[str]


@dataclass(frozen=True)
class Rules:
    """When an item is found: the arguments of ``CoverageMatcher``."""

    threshold: float = 0.8
    min_run: int = 5
    union: bool = False
    letters: bool = False  # texts are letters and numbers: tokenizer="letters"


@dataclass(frozen=True)
class Query:
    """The ground truth of a query and what was retrieved for it, best first."""

    items: Sequence[Sequence[Text]]
    documents: Sequence[Text]
    grades: Sequence[float] = ()  # all 1 if none are given

    def ground_truth(self):
        """Return the items that count: no repeats of an earlier one, none of grade 0."""
        seen: list[set[tuple[str, ...]]] = []
        kept = []
        for texts, grade in zip(self.items, self.grades or [1.0] * len(self.items), strict=True):
            said = {tuple(text) for text in texts if text}
            if said and said in seen:
                continue
            seen.append(said)
            if grade > 0:
                kept.append(Item([list(text) for text in texts], grade))
        return kept


@dataclass(frozen=True)
class Item:
    """A ground-truth item: interchangeable texts and a grade."""

    texts: Sequence[Text]
    grade: float


# --- one text and the documents --------------------------------------------------------------


def positions_shared(text, other, run, *, letters=False):
    """Return the positions of ``text`` inside runs of so many tokens that ``other`` has too."""
    elsewhere = {one for both in runs_had(other, run, letters=letters) for one in both}
    wanted = runs_wanted(text, run, letters=letters)
    return within([start for start, one in enumerate(wanted) if one in elsewhere], run)


def positions_used(document, text, run, *, letters=False):
    """Return the positions of ``document`` inside such runs."""
    wanted = set(runs_wanted(text, run, letters=letters))
    had = runs_had(document, run, letters=letters)
    return within([start for start, both in enumerate(had) if not wanted.isdisjoint(both)], run)


def within(starts, run):
    return {position for start in starts for position in range(start, start + run)}


def runs_wanted(text, run, *, letters):
    """Return the run from each position of a passage; one inside an amount stands behind it."""
    return [
        (begun_amount(text, start) if letters else (), tuple(text[start : start + run]))
        for start in range(len(text) - run + 1 if run else 0)
    ]


def runs_had(document, run, *, letters):
    """Return the run from each position of a document, wherever it stands, and as it stands."""
    wanted = runs_wanted(document, run, letters=letters)
    return [(((), tokens), (before, tokens)) for before, tokens in wanted]


def begun_amount(text, position):
    """Return what stands of an amount, a number and two letters, before one of the letters."""
    for start in (position - 1, position - 2):
        if start >= 0 and text[start].isdecimal() and not text[position].isdecimal():
            return tuple(text[start:position])
    return ()


class Held:
    """What documents hold of one text of the ground truth. Ranks are from 1."""

    def __init__(self, text, documents, rules):
        run = min(rules.min_run, len(text))
        self.size = len(text)  # m_g
        self.rules = rules
        self.text, self.documents, self.run = text, documents, run
        #: M(g, i): positions of the text that document i holds.
        letters = rules.letters
        self.alone = [positions_shared(text, one, run, letters=letters) for one in documents]
        #: Positions of document i that lie in the text.
        self.useful = [positions_used(one, text, run, letters=letters) for one in documents]
        self.parts = parts_at_edges(text, documents, run, rules)
        #: U_g(i): positions that documents 1 to i hold together; of no document, none.
        self.together: list[set[int]] = [set()]
        for rank, positions in enumerate(self.alone, 1):
            self.together.append(self.together[-1] | positions | self.cut(rank))

    def share(self, positions):
        return len(positions) / self.size if self.size else 0.0

    def is_enough(self, positions):
        return len(positions) > 0 and self.share(positions) >= self.rules.threshold

    def similarity(self, rank):
        return self.share(self.alone[rank - 1])

    @cached_property
    def matching(self):
        """The ranks of the documents that hold enough of the text alone."""
        return [rank for rank, alone in enumerate(self.alone, 1) if self.is_enough(alone)]

    @cached_property
    def first_rank(self):
        """The rank at which enough of the text is there, alone or together."""
        if not self.rules.union:
            return min(self.matching, default=None)
        enough = [rank for rank, held in enumerate(self.together) if self.is_enough(held)]
        return min(enough, default=None)

    def added(self, rank):
        """Return the positions that no document before this one holds."""
        return self.together[rank] - self.together[rank - 1]

    def cut(self, rank):
        """Return the positions that the first documents hold where the text was cut."""
        return {at for part in in_chains(self.parts, rank) for at in range(part.start, part.stop)}

    def at_edges(self, rank):
        """Return document and position of the words that bring some where the text was cut.

        These count from a rank on, that of the last document it takes. Of several pieces, that one
        counts which is whole first, and of these the one at the best rank.
        """
        places = set()
        for earlier in range(1, rank + 1):
            whole = in_chains(self.parts, earlier)
            for position in self.added(earlier) - self.alone[earlier - 1]:
                has = [part for part in whole if part.start <= position < part.stop]
                part = min(has, key=lambda one: (one.since, one.order()))
                places.add((part.rank, part.place(position, len(self.documents[part.rank - 1]))))
        return places

    def bringing(self, rank):
        """Return the positions of a document that bring what no document before it holds.

        A token is brought by the first run of the passage that holds it. A run is at its next place
        in the document after that of the run before it, or else at its first.
        """
        letters = self.rules.letters
        had = runs_had(self.documents[rank - 1], self.run, letters=letters)
        placed: dict[int, int] = {}
        last = -1
        for start, one in enumerate(runs_wanted(self.text, self.run, letters=letters)):
            places = [place for place, both in enumerate(had) if one in both]
            if places:
                last = min([place for place in places if place > last] or places)
                for step in range(self.run):
                    placed.setdefault(start + step, last + step)
        return {placed[position] for position in self.added(rank) & self.alone[rank - 1]}


# --- where a text was cut ---------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A part of a text that ends a document, begins one, or is all of one."""

    start: int
    stop: int
    rank: int
    kind: str
    since: int = 0  # the rank from which a chain that it belongs to is whole

    def order(self):
        """Return what decides between parts that are whole at the same rank."""
        return self.start, self.stop, self.rank, self.kind == "ends"

    def place(self, position, n_tokens):
        """Return where in the document a position of the text stands."""
        return n_tokens - self.stop + position if self.kind == "ends" else position - self.start


def parts_at_edges(text, documents, run, rules):  # noqa: C901 - one rule after the other
    """Return the parts of a text that may belong to a chain of documents.

    A part that begins a chain has a run at the end of a document, or the text begins with it; one
    that ends a chain has one at the beginning of a document, or the text ends with it.
    """
    if len(text) < 2 or len(text) < 0.4 * rules.min_run:
        return []
    parts = []
    for rank, document in enumerate(documents, 1):
        if document in documents[: rank - 1]:
            continue
        if len(document) < len(text) < rules.min_run:  # of a short text, less says nothing
            continue
        for at in range(1, len(text)):
            start = max(at - run, 0)
            if rules.letters:  # never inside an amount
                start -= len(begun_amount(text, start))
            if document[start - at :] == text[start:at]:
                parts.append(Part(start, at, rank, "ends"))
            stop = min(at + run, len(text))
            if document[: stop - at] == text[at:stop]:
                while document[stop - at : stop - at + 1] == text[stop : stop + 1] != []:
                    stop += 1
                parts.append(Part(at, stop, rank, "begins"))
            whole = at + len(document)
            if document and text[at:whole] == document:
                parts.append(Part(at, whole, rank, "is all"))
    return parts


def in_chains(parts, most):
    """Return the parts that belong to a chain of documents up to a rank, and since which rank."""
    found = {}
    for rank in range(1, most + 1):
        seen = [part for part in parts if part.rank <= rank]
        for part in seen:
            if part not in found and begins_chain(part, seen) and ends_chain(part, seen):
                found[part] = replace(part, since=rank)
    return [*found.values()]


def goes_on(one, other):
    """Return whether another document goes on where one ends, or overlaps it."""
    return (
        one.kind != "begins"
        and other.kind != "ends"
        and one.rank != other.rank
        and one.start < other.start <= one.stop < other.stop
    )


def begins_chain(part, parts):
    """Return whether a part begins a chain, or goes on with one."""
    return part.kind == "ends" or any(
        goes_on(one, part) and begins_chain(one, parts) for one in parts
    )


def ends_chain(part, parts):
    """Return whether a part ends a chain, or one goes on from it."""
    return part.kind == "begins" or any(
        goes_on(part, one) and ends_chain(one, parts) for one in parts
    )


# --- one query -------------------------------------------------------------------------------


class Found:
    """What was found for one query within a cutoff."""

    def __init__(self, query, rules, k=None):
        self.k = k
        self.rules = rules
        self.items = query.ground_truth()
        self.n = len(self.items)
        self.documents = query.documents[:k]
        self.retrieved = len(self.documents)
        self.ranks = range(1, self.retrieved + 1)
        #: For each item, what is held of each of its alternatives.
        self.held = [
            [Held(text, self.documents, rules) for text in item.texts] for item in self.items
        ]
        self.first = [self._first_rank(texts) for texts in self.held]  # f_g
        self.covered = [j for j in range(self.n) if self.first[j] is not None]
        self.relevant = self._relevant()

    def relevant_within(self, depth):
        """Return what is relevant with nothing retrieved beyond a depth."""
        items = [item.texts for item in self.items]
        grades = [item.grade for item in self.items]
        return Found(Query(items, self.documents[:depth], grades), self.rules).relevant

    def _first_rank(self, texts):
        ranks = [text.first_rank for text in texts]
        return min((rank for rank in ranks if rank is not None), default=None)

    def _relevant(self):
        """Return the ranks of the documents that match alone, or are pieces of what is found."""
        found: set[int] = set()
        for j in range(self.n):
            found |= {rank for text in self.held[j] for rank in text.matching}
            if self.rules.union and self.first[j] is not None:
                found |= self.pieces(j)
        return sorted(found)

    def pieces(self, j):
        """Return the ranks that add to an alternative completed at the item's first rank."""
        first = self.first[j]
        return {
            rank
            for text in self.held[j]
            if text.first_rank == first
            for rank in range(1, first + 1)
            if text.added(rank)
        }

    def similarity(self, j, rank):
        """Return how much of an item one document holds alone, of the best alternative."""
        return max(text.similarity(rank) for text in self.held[j])

    def hits(self, j):
        """Return the hits of an item: their ranks, and how much is held there."""
        matching = sorted({rank for text in self.held[j] for rank in text.matching})
        alone = [(rank, self.similarity(j, rank)) for rank in matching]
        first = self.first[j]
        if not self.rules.union or first is None:
            return alone
        completed = [text for text in self.held[j] if text.first_rank == first]
        share = max(text.share(text.together[first]) for text in completed)
        return [(first, share), *((rank, one) for rank, one in alone if rank > first)]

    def precision_at(self, rank):
        return len([one for one in self.relevant if one <= rank]) / rank

    # Word by word: of interchangeable texts, the one held most.

    def held_most(self, j):
        """Return the alternative with the greatest share held, the first of equals.

        A text without words is no alternative where there is another.
        """
        texts = [text for text in self.held[j] if text.size] or self.held[j]
        return max(texts, key=lambda text: text.share(text.together[-1]))

    @cached_property
    def words(self):
        return [self.held_most(j) for j in range(self.n)]

    @cached_property
    def n_wanted(self):
        """Tokens of the ground truth: the sum of m_g."""
        return sum(text.size for text in self.words)

    @cached_property
    def n_held(self):
        """Those of them that the documents hold together: the sum of |U_g(k)|."""
        return sum(len(text.together[-1]) for text in self.words)

    @cached_property
    def n_read(self):
        """Tokens of the documents: the sum of n_i."""
        return sum(len(document) for document in self.documents)

    @cached_property
    def at_edges(self):
        """Rank and position of the words that bring some where a text was cut."""
        return set().union(*(text.at_edges(self.retrieved) for text in self.words))

    @cached_property
    def n_useful(self):
        """|V_i|: each document's tokens that lie in some item."""
        useful = [[text.useful[rank - 1] for text in self.words] for rank in self.ranks]
        return [len(places) for places in self._with_edges(useful)]

    @cached_property
    def n_new(self):
        """Tokens of the documents that show something for the first time: N, the sum of |W_i|."""
        bringing = [[text.bringing(rank) for text in self.words] for rank in self.ranks]
        return sum(len(places) for places in self._with_edges(bringing))

    def _with_edges(self, of_documents):
        """Return positions of each document, together with those where a text was cut."""
        return [
            set().union(*places, {at for own, at in self.at_edges if own == rank})
            for rank, places in enumerate(of_documents, 1)
        ]


# --- the metrics of words, and all of them --------------------------------------------------


def token_recall(found):
    return ratio(found.n_held, found.n_wanted)


def token_precision(found):
    return ratio(found.n_new, found.n_read)


def token_iou(found):
    return ratio(found.n_new, found.n_read + found.n_wanted - found.n_held)


def redundancy(found):
    useful = sum(found.n_useful)
    return 1 - found.n_new / useful if useful else math.nan


def by_default(name):
    """Return a metric as it is defined where nothing but what was found counts."""
    return lambda found: reference.METRICS[name](found, Conventions())


#: Column of the per-query table -> how it is defined. ``hit_rate`` is that of all items.
METRICS = {name: by_default(name) for name in reference.METRICS if name not in ("hit_any", "rbp")}
METRICS |= {
    "rbp(p=0.8)": by_default("rbp"),
    "token_recall": token_recall,
    "token_precision": token_precision,
    "token_iou": token_iou,
    "redundancy": redundancy,
}

#: The metrics of words, which only coverage has.
OF_WORDS = ("token_recall", "token_precision", "token_iou", "redundancy")


# --- over queries ----------------------------------------------------------------------------


def averages(founds):
    """Return every average over queries that all count."""
    means = ("r_precision", "rbp(p=0.8)", "token_iou", "redundancy")
    return {
        **reference.averages_of(founds, Conventions()),
        **{name: mean([METRICS[name](found) for found in founds]) for name in means},
        "micro_token_recall": share(
            [found.n_held for found in founds], [found.n_wanted for found in founds]
        ),
        "macro_token_recall": mean([token_recall(found) for found in founds]),
        "micro_token_precision": share(
            [found.n_new for found in founds], [found.n_read for found in founds]
        ),
        "macro_token_precision": mean([token_precision(found) for found in founds]),
    }


# --- random cases ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Some queries and how they are to be evaluated."""

    queries: Sequence[Query]
    rules: Rules = field(default_factory=Rules)
    skip: bool = False  # whether queries without ground truth are left out, or count as 0
    all_items: bool = True  # whether a hit needs all items, or any
    seed: int = 0


#: So few words that runs repeat within a text and between texts.
VOCABULARIES = ("ab", "abcd", "abcdefgh", "abcdefghijklmnopqrstuvwxyz")


def random_case(seed, *, alternatives=True, graded=True):
    """Return a random case, the same for a seed wherever it runs."""
    source = random.Random(seed)
    rules = Rules(source.choice([0.3, 0.5, 0.8, 1.0]), source.randint(1, 5))
    words = source.choice(VOCABULARIES)
    queries = [
        _random_query(source, words, alternatives=alternatives, graded=graded)
        for _ in range(source.randint(1, 5))
    ]
    some = any(query.ground_truth() for query in queries)
    skip, all_items = some and source.random() < 0.5, source.random() < 0.7
    return Case(queries, rules, skip, all_items, seed)


def overlapping_case(seed):
    """Return a random case whose passages and chunks are stretches of one text."""
    source = random.Random(seed)
    words = source.choice(VOCABULARIES[1:])
    queries = []
    for _ in range(source.randint(1, 4)):
        text = _random_text(source, words, source.choice([12, 20, 30]))

        def stretches(n, longest, text=text):
            starts = [source.randrange(len(text)) for _ in range(n)]
            return [text[start : start + source.randint(1, longest)] for start in starts]

        items = [stretches(source.choice([1, 1, 1, 2]), 12) for _ in range(source.randint(2, 4))]
        documents = [_around(source, words, one) for one in stretches(source.randint(0, 6), 15)]
        queries.append(Query(items, documents, [1.0] * len(items)))
    return Case(queries, Rules(source.choice([0.3, 0.8]), source.randint(1, 4)), seed=seed)


def in_letters(case):
    """Return the case with a letter for each word, some of them numbers of one digit."""
    written = {word: chr(ord("가") + 28 * at) for at, word in enumerate(VOCABULARIES[-1])}
    written |= {"b": "3", "d": "7", "h": "5"}

    def read(texts):
        return [[written[word] for word in text] for text in texts]

    queries = [
        replace(one, items=[*map(read, one.items)], documents=read(one.documents))
        for one in case.queries
    ]
    return replace(case, queries=queries, rules=replace(case.rules, letters=True))


def _random_query(source, words, *, alternatives, graded):
    """Return a query whose documents hold stretches of its ground truth."""
    items = [
        _random_item(source, words, alternatives=alternatives) for _ in range(source.randint(0, 4))
    ]
    if items and source.random() < 0.3:  # the same item again, its texts in another order
        again = source.choice(items)
        items.insert(source.randint(0, len(items)), source.sample(again, len(again)))
    texts = [text for item in items for text in item if text]
    documents = [
        _random_document(source, words, texts) for _ in range(source.choice([0, 0, 0, 1, 2, 4]))
    ]
    for text in texts:
        if source.random() < 0.6:  # as if a splitter had cut through it
            documents += [_around(source, words, piece) for piece in _cut_up(source, text)]
    if documents and source.random() < 0.3:
        documents.append(source.choice(documents))
    source.shuffle(documents)
    documents = documents[: source.choice([2, 4, 6, 8, 12])]
    grades: dict[frozenset[tuple[str, ...]], float] = {}
    for item in items:  # what says the same has the same grade
        weight = source.choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.0]) if graded else 1.0
        grades.setdefault(_said(item), weight)
    return Query(items, documents, [grades[_said(item)] for item in items])


def _said(item):
    return frozenset(tuple(text) for text in item if text)


def _random_item(source, words, *, alternatives):
    n = source.choice([1, 1, 2, 3]) if alternatives else 1
    return [_random_text(source, words, source.choice([0, 3, 6, 12, 20])) for _ in range(n)]


def _random_text(source, words, most):
    return source.choices(words, k=source.randint((most + 1) // 3, most))


def _random_document(source, words, texts):
    """Return a chunk: what stands around, and stretches of the ground truth."""
    document = _random_text(source, words, source.choice([0, 0, 2, 6]))
    for _ in range(source.choice([0, 1, 1, 2]) if texts else 0):
        text = source.choice(texts)
        start = source.randint(0, len(text) - 1)
        document += _around(source, words, text[start : source.randint(start + 1, len(text))])
    return document


def _cut_up(source, text):
    """Return pieces that follow each other in a text, overlapping or not."""
    size = source.randint(1, len(text) // 2 + 1)
    overlap = source.choice([0, 1, 2, 4])
    return [text[start : start + size + overlap] for start in range(0, len(text), size)]


def _around(source, words, piece):
    """Return a piece with a few words around it."""
    before, after = (_random_text(source, words, source.choice([0, 0, 1, 3])) for _ in range(2))
    return [*before, *piece, *after]
