"""The data set every reader returns, and how lists by id are joined to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar

from krag_eval.core import (
    LISTS,
    N_,
    Advice,
    AnyOf,
    DocumentLike,
    InvalidInput,
    Place,
    Tag,
    _,
    id_of,
    labels_for,
    metadata_of,
    single,
    warn,
)
from krag_eval.core.documents import by_query, checked_tags, composed, ids_among
from krag_eval.loading.cells import is_bare, with_status

if TYPE_CHECKING:
    from krag_eval.core import MissingQuestions
    from krag_eval.core.evaluator import Evaluator
    from krag_eval.core.results.latency import Failure


_Evaluator = TypeVar("_Evaluator", bound="Evaluator[Any]")


@dataclass(frozen=True, repr=False)
class Dataset:
    """Questions with the documents that should come back and the ranked ones that did.

    ``krag_eval.datasets.Dataset`` says what its attributes are, and has an evaluator.
    """

    queries: list[str | int]
    actual: list[list[DocumentLike | AnyOf]]
    predicted: list[list[DocumentLike]] | None = None
    source: str = field(default="", compare=False)
    lines: list[int] = field(default_factory=list, compare=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    questions: list[str] | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    vocabulary: str = field(default="", compare=False)
    tags: dict[str, list[Tag]] = field(default_factory=dict)
    judged: Sequence[Any] | Mapping[str | int, Any] | None = None
    failures: Sequence[Failure] = field(default=(), compare=False)
    unwanted: Sequence[Any] | Mapping[str | int, Any] | None = None
    cited: Sequence[Any] | Mapping[str | int, Any] | None = None
    run: Sequence[Place | None] = field(default=(), compare=False)
    missing: MissingQuestions | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.questions is not None and len(self.questions) != len(self.queries):
            raise InvalidInput(
                "questions",
                f"must have one text per query, got {len(self.questions)} for {self.n_queries} "
                "queries",
                "leave them out if some are unknown",
            )
        strange = [one.position for one in self.failures if one.position >= self.n_queries]
        if strange:
            problem = f"must be of these {self.n_queries} queries, got position {strange[0]}"
            raise InvalidInput("failures", problem, "choose those of the queries that are kept")
        object.__setattr__(self, "tags", checked_tags(self.tags, len(self.queries)))
        for name in ("judged", *LISTS):
            if (given := getattr(self, name)) is not None:
                nothing = () if name == "judged" else None
                lists = [nothing if one is None else one
                         for one in by_query(given, self.queries, name)]  # fmt: skip
                kept = [list(one) if isinstance(one, tuple) else one for one in lists]
                object.__setattr__(self, name, None if all(one is None for one in kept) else kept)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def ids(self) -> list[str] | None:
        """The ids of the queries: of their column ``id``, or what they are labelled by.

        ``None`` where a query has none, and where labels are questions or positions.

        >>> Dataset(["When?"], [["nine"]], questions=["When?"], tags={"id": ["q1"]}).ids
        ['q1']
        """
        if (found := ids_among(self.tags)) is not None:
            return found
        are_ids = self.questions != self.queries and all(isinstance(x, str) for x in self.queries)
        return [*map(str, self.queries)] if are_ids and self.questions is not None else None

    def chosen(self, places: Sequence[int]) -> Self:
        """Return the data set of some of its queries, by their places."""
        lists: dict[str, Any] = {
            field: [values[at] for at in places]
            for field in _PER_QUERY
            if (values := getattr(self, field))
        }
        tags = {name: [values[at] for at in places] for name, values in self.tags.items()}
        return replace(self, **lists, tags=tags, failures=(), missing=None)

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Refuse a name; what evaluates is the evaluator."""
            hint = "; write evaluator(…).evaluate(k)" if name == "evaluate" else ""
            problem = f"'Dataset' object has no attribute {name!r}{hint}"
            raise AttributeError(problem, name=name, obj=self)

    def _evaluator_of(self, kind: type[_Evaluator], options: dict[str, Any]) -> _Evaluator:
        """Return an evaluator of a class, of this data set; see ``krag_eval.datasets.Dataset``."""
        if self.predicted is None:
            raise Place(self.source or "dataset").error(
                "holds no retrieved documents",
                Advice(
                    "evaluate_retriever(retriever, dataset) asks a retriever for them; a column of "
                    "another name is named by {}",
                    predicted=...,
                ),
            )
        matcher = options.get("matcher")
        queries = labels_for(matcher, self.queries, self.questions)
        known = {"queries": queries, "tags": self.tags}
        lists = {name: getattr(self, name) for name in ("judged", *LISTS)}
        if "tags" in options:
            options["tags"] = with_status(options["tags"], self.tags)
        known |= {name: some for name, some in lists.items() if some is not None}
        made = kind(
            self.actual, self.predicted, **{**known, **with_defaults(self.defaults, options)}
        )
        made = made.with_failures(self.failures) if self.failures else made
        return made.with_missing(self.missing)

    def __repr__(self) -> str:
        read_from = _(" from {}").format(self.source) if self.source else ""
        bare = _(", nothing retrieved yet") if self.predicted is None else ""
        return _("Dataset of {} queries").format(self.n_queries) + read_from + bare


_PER_QUERY = (
    "queries", "actual", "predicted", "questions", "lines", "judged", "run", *LISTS
)  # fmt: skip


#: What happens to queries that nothing was retrieved for; ``None`` if nobody is to hear of it.
Absent: TypeAlias = Literal["zero", "zero, as trec_eval -c", "skip"] | None


class Overlap(NamedTuple):
    """How many queries there are, and the first of them.

    Attributes:
        expected: Those to evaluate.
        given: Those something was retrieved for.
        lacking: Those of the former that the latter lack.
        extra: Those of the latter that the former lack.
    """

    expected: tuple[int, str]
    given: tuple[int, str]
    lacking: tuple[int, str]
    extra: tuple[int, str]


def tell_overlap(found: Overlap, expected_name: str, given_name: str, absent: Absent) -> None:
    """Warn as :func:`check_overlap` does.

    Raises:
        DatasetError: If they have none in common.
    """
    expected, given, lacking, extra = found
    names = {"given": given_name, "expected": expected_name}
    if extra[0] == given[0]:
        some = f" (such as {given[1]!r})" if given[0] else ""
        raise Place(given_name).error(
            f"none of its {given[0]} queries{some} is among the {expected[0]} of "
            f"{expected_name} (such as {expected[1]!r})",
            "are they of the same collection?",
        )
    if extra[0]:
        told = _(
            "{given}: {n} of {queries} queries are not in {expected} and are left out (the first "
            "is {first!r})."
        )
        warn(told.format(n=extra[0], queries=given[0], first=extra[1], **names))
    if lacking[0] and absent is not None:
        told = _(
            "{given}: {n} of the {queries} queries of {expected} are missing (the first is "
            "{first!r}) {absent}."
        )
        what = _(_ABSENT[absent])
        as_trec_eval = Advice(_("{} leaves them out, as trec_eval does without -c"), missing="skip")
        warn(
            told.format(n=lacking[0], queries=expected[0], first=lacking[1], absent=what, **names),
            as_trec_eval if absent == "zero, as trec_eval -c" else "",
        )


_ABSENT = {
    "zero": N_("and count as nothing retrieved"),
    "zero, as trec_eval -c": N_("and count as nothing retrieved, as with trec_eval -c"),
    "skip": N_("and are left out"),
}


_SIDES = ("actual", "predicted")


def named_by(documents: Iterable[DocumentLike], index: Collection[str]) -> set[str]:
    """Return the documents that are ids of an index, and have no text of their own.

    What equals an id of the index is an id. Where there is any, so is every other plain text of one
    word, which the index lacks then; a passage is none.

    Args:
        documents: Documents of one side, each by itself.
        index: The ids of the index.

    >>> sorted(named_by(["d1", "d9", "At nine."], {"d1", "d2"})), named_by(["d9"], {"d1"})
    (['d1', 'd9'], set())
    """
    bare = {id_of(one) or "": isinstance(one, str) for one in documents if is_bare(one)}
    if bare.keys().isdisjoint(index):
        return set()
    return {name for name, is_plain in bare.items()
            if name in index or not is_plain or len(name.split()) == 1}  # fmt: skip


def with_texts(
    dataset: Dataset,
    corpus: Mapping[str, Mapping[str, Any]],
    name: str,
    sides: Collection[str] = _SIDES,
    *,
    named: Mapping[str, Collection[str]] | None = None,
) -> Dataset:
    """Return the data set with the corpus's texts and metadata in place of bare ids.

    A document that the corpus lacks has an empty text and keeps its id; a warning counts them.

    Args:
        dataset: A data set of ids.
        corpus: Id -> document, as a dict with ``"page_content"``, ``"id"`` and perhaps
            ``"metadata"``. A document of the data set keeps metadata of its own, such as its grade.
        name: What to call the corpus.
        sides: Which documents get texts.
        named: Side -> the documents that are ids, where not all without a text are.

    >>> corpus = {"a": {"page_content": "At nine.", "id": "a"}}
    >>> with_texts(Dataset(["q"], [["a"]], [[]]), corpus, "corpus").actual
    [[{'page_content': 'At nine.', 'id': 'a'}]]
    """
    absent: dict[str, None] = {}
    if not all(map(str.isascii, corpus)):
        corpus = {composed(identity): one for identity, one in corpus.items()}

    def full(document: DocumentLike, side: str) -> DocumentLike:
        identity = id_of(document) or ""
        if not is_bare(document) or not (named is None or identity in named[side]):
            return document
        known = corpus.get(identity)
        if known is None:
            absent[identity] = None
            known = {"page_content": "", "id": identity}
        own = metadata_of(document)
        return {**known, "metadata": {**metadata_of(known), **own}} if own else known

    def item(one: DocumentLike | AnyOf, side: str) -> DocumentLike | AnyOf:
        if isinstance(one, AnyOf):
            return AnyOf(full(document, side) for document in one.alternatives)
        return full(one, side)

    found: dict[str, Any] = {
        side: [[item(one, side) for one in several] for several in lists]
        for side in sides
        if (lists := getattr(dataset, side)) is not None
    }
    made = replace(dataset, **found)
    if absent:
        told = _(
            "{name}: {n} documents are not in it (the first is {first!r}); they have an empty "
            "text, which no text matcher matches."
        )
        warn(told.format(name=name, n=len(absent), first=next(iter(absent))))
    return made


def with_index(
    dataset: Dataset, corpus: Mapping[str, Mapping[str, Any]], name: str
) -> tuple[Dataset, bool]:
    """Return the data set with an index's texts in place of ids, and whether it holds any id of it.

    Ground truth and retrieved documents are looked at each by themselves.

    >>> corpus = {"d1": {"page_content": "At nine.", "id": "d1"}}
    >>> with_index(Dataset(["q"], [["At nine."]], [["d1"]]), corpus, "chunks")[0].predicted
    [[{'page_content': 'At nine.', 'id': 'd1'}]]
    """
    named = {
        side: named_by(chain.from_iterable(map(single, getattr(dataset, side) or ())), corpus)
        for side in _SIDES
    }
    return with_texts(dataset, corpus, name, named=named), any(named.values())


def with_defaults(defaults: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options, and what a data set brings for those that are not given.

    A matcher that is given wins whole: it brings its own threshold.

    >>> with_defaults({"matcher": "rouge1", "threshold": 0.01}, {"matcher": "rouge1"})
    {'matcher': 'rouge1'}
    """
    replaced = {"threshold"} if options.get("matcher") is not None else set()
    replaced |= {"grade_key"} if options.get("grades") == "no" else set()
    kept = {name: value for name, value in defaults.items() if name not in replaced}
    return {**kept, **options}
