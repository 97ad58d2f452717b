"""Recordings: what a retriever was seen to return inside a chain, question by question.

This room knows which runs belong to one question, which of them is meant, and which ground truth
belongs to it. It must not know callbacks or results.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from krag_eval._errors import clipped, warn

if TYPE_CHECKING:
    from krag_eval.documents import DocumentLike

__all__ = ["CALLS", "Question", "Seen", "aligned", "chosen_name", "question_of", "seen_of"]

#: Which calls count if a retriever was called several times for one question: there must be one;
#: all of them, one after the other; the first; the last.
CALLS = ("one", "all", "first", "last")
_NAMED = 5


@dataclass(eq=False)
class Seen:
    """One call of one retriever.

    Attributes:
        name: The retriever's name.
        query: What it was asked, which a chain may have rewritten.
        outermost: Whether no other retriever called it.
        documents: What it returned; ``None`` if it failed or is still at it.
        error: What it raised.
        seconds: How long it took; NaN until it ended.
    """

    name: str
    query: str
    outermost: bool
    documents: list[DocumentLike] | None = None
    error: BaseException | None = None
    seconds: float = float("nan")


@dataclass(eq=False)
class Question:
    """One call of the outermost chain (or retriever), and the retrievers seen in it.

    Attributes:
        inputs: The texts it was given: one without a name, or several by their names.
        strand: The thread and task it was started in.
        after_others: Whether all that started before it had ended.
        running: Its runs that have not ended.
        seen: The calls of retrievers, in the order they started.
    """

    inputs: str | dict[str, str] | None
    strand: tuple[int, object]
    after_others: bool
    running: set[UUID] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)


def chosen_name(questions: Sequence[Question], retriever: str | None) -> str:
    """Return the retriever that is meant: the one named, or the only outermost one.

    Raises:
        ValueError: If none was seen, none has that name, or there are several.
    """
    everyone = list(dict.fromkeys(seen.name for one in questions for seen in one.seen))
    if not everyone:
        raise ValueError(
            "no retriever was seen: pass the recorder to the chain, chain.invoke(question, "
            'config={"callbacks": [recorder]}). A plain function or RunnableLambda fires no '
            "retriever events; put recorder.wrap(…) around it."
        )
    named = ", ".join(map(repr, everyone))
    if retriever is not None:
        if retriever not in everyone:
            raise ValueError(f"retriever must be one of those seen, {named}, got {retriever!r}.")
        return retriever
    outermost = {seen.name for one in questions for seen in one.seen if seen.outermost}
    if len(outermost) > 1:
        raise ValueError(
            f"several retrievers were seen ({named}); name the one to evaluate by retriever=…"
        )
    return outermost.pop()


def seen_of(question: Question, name: str, asked: str, calls: str) -> Seen | None:
    """Return what that retriever did for a question; ``None`` if it was not called.

    Args:
        question: What was recorded.
        name: The retriever.
        asked: The question, for the message.
        calls: What to do if it was called more than once; see :data:`CALLS`.

    Raises:
        ValueError: If it was called more than once, and only one call is expected.
    """
    found = [seen for seen in question.seen if seen.name == name]
    outer = [seen for seen in found if seen.outermost]
    if len(outer) == 1:
        return outer[0]  # what it called by the same name is part of its own doing
    if len(found) > 1 and calls == "one":
        raise ValueError(
            f"the retriever {name!r} was called {len(found)} times for the question "
            f"{clipped(asked)}. If these are several retrievers, tell them apart: "
            'retriever.with_config(run_name="dense"); if another one calls it, name that by '
            'retriever=…; if an agent asked several times, say which calls count: calls="all", '
            '"first" or "last".'
        )
    if len(found) > 1 and calls == "all":
        return _joined(found)
    return found[-1 if calls == "last" else 0] if found else None


def _joined(calls: Sequence[Seen]) -> Seen:
    """Join calls into one: their documents in the order of the calls, their times added up."""
    returned = [call for call in calls if call.documents is not None]
    if not returned:
        return calls[0]
    documents = [document for call in returned for document in call.documents or []]
    return replace(returned[0], documents=documents, seconds=sum(call.seconds for call in returned))


def question_of(question: Question, input_key: str | None) -> str:
    """Return the question that was asked, as the user wrote it.

    The chain's input if it is a text; the text under ``input_key``; the only text among its
    inputs; the one of them that a retriever was asked. A chain whose input holds no text is known
    by what its first retriever was asked.

    Raises:
        ValueError: If its input has several texts, or none under ``input_key``.

    >>> question_of(Question({"q": "When?", "language": ""}, (0, None), True), None)
    'When?'
    """
    given = question.inputs
    if isinstance(given, str):
        return given
    texts = {key: text for key, text in (given or {}).items() if text}
    if input_key is not None and given is not None:
        if input_key not in texts:
            keys = ", ".join(map(repr, texts)) or "no text at all"
            raise ValueError(f"input_key={input_key!r}: the chain was given {keys}.")
        return texts[input_key]
    asked = [seen.query for seen in question.seen]
    if len(texts) > 1:
        same = set(texts.values()) & set(asked)
        if len(same) != 1:
            raise ValueError(
                "the chain was given several texts, so it is not clear which is the question; "
                f"name its key: input_key={next(iter(texts))!r} (there are "
                f"{', '.join(map(repr, texts))})."
            )
        return same.pop()
    if not texts and not asked:
        raise ValueError(
            "a chain was recorded that was given no text and called no retriever, so its question "
            "is unknown; record only the chain that retrieves."
        )
    return next(iter(texts.values()), None) or asked[0]


def aligned(
    ground_truth: Any, questions: Sequence[Question], asked: Sequence[str]
) -> tuple[list[str | int], list[Any], list[Question]]:
    """Return labels, ground truth and questions in one order.

    Args:
        ground_truth: A list in the order the questions were asked, or a dict by question.
        questions: What was recorded, in the order they started.
        asked: Their texts.

    Raises:
        TypeError: If the ground truth is neither, or that of a question is no list.
        ValueError: If the two do not fit together, or a list is given where no order is known.
    """
    if isinstance(ground_truth, Mapping):
        _check_lists(ground_truth.items())
        _check_names(ground_truth, asked)
        places = {text: place for place, text in enumerate(asked)}
        return (
            list(ground_truth),
            list(ground_truth.values()),
            [questions[places[text]] for text in ground_truth],
        )
    if isinstance(ground_truth, str | bytes) or not isinstance(ground_truth, Sequence):
        raise TypeError(
            "ground_truth must be a list with one list of documents per question, in the order "
            "the questions were asked, or a dict from question to documents, got a "
            f"{type(ground_truth).__name__}."
        )
    if len(ground_truth) != len(questions):
        raise ValueError(
            f"ground_truth has {len(ground_truth)} entries, and {len(questions)} questions were "
            f"asked (the first is {clipped(asked[0])}); clear() forgets earlier ones, and a dict "
            "by question says which is which."
        )
    if not _in_order(questions):
        raise ValueError(
            "the questions were asked at the same time, so their order is not known; pass the "
            "ground truth as a dict from question to documents."
        )
    _check_lists(enumerate(ground_truth))
    return _labels(asked), list(ground_truth), list(questions)


def _check_lists(ground_truth: Iterable[tuple[object, object]]) -> None:
    """Refuse one document where a list of them belongs, and name the question."""
    for question, documents in ground_truth:
        single = isinstance(documents, str | bytes | Mapping) or hasattr(documents, "page_content")
        if single or not hasattr(documents, "__iter__"):
            raise TypeError(
                f"ground_truth[{clipped(question)}] must be a list of documents, got "
                f"{clipped(documents)}; write a list, even for one document."
            )


def _in_order(questions: Sequence[Question]) -> bool:
    """Tell whether the order in which they started is the order in which they were asked.

    Within one thread and task the program decides it. Threads overtake each other before they
    start, so of several nothing is known; tasks of one thread do if they run at the same time.
    """
    thread = questions[0].strand[0]
    return all(
        one.strand[0] == thread and (one.after_others or one.strand == before.strand)
        for before, one in zip([questions[0], *questions], questions, strict=False)
    )


def _check_names(ground_truth: Mapping[Any, Any], asked: Sequence[str]) -> None:
    twice = [text for text, n in Counter(asked).items() if n > 1]
    if twice:
        raise ValueError(
            f"ground_truth by question: {_some(twice)} asked more than once, so it is not clear "
            "which answer to evaluate; clear() the recorder before asking again, or pass the "
            "ground truth as a list in the order of the questions."
        )
    unknown = [text for text in asked if text not in ground_truth]
    if unknown:
        texts = [text for text in ground_truth if isinstance(text, str)]
        near = difflib.get_close_matches(unknown[0], texts, n=1)
        hint = f" (did you mean {clipped(near[0])}?)" if near else ""
        raise ValueError(f"ground_truth lacks what was asked: {_some(unknown)} not in it{hint}.")
    unasked = [text for text in ground_truth if text not in set(asked)]
    if unasked:
        raise ValueError(
            f"ground_truth has questions that were never asked: {_some(unasked)} not recorded; "
            "ask them too, or leave them out."
        )


def _some(texts: Sequence[object]) -> str:
    named = ", ".join(map(clipped, texts[:_NAMED]))
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return f"{named}{more} {'was' if len(texts) == 1 else 'were'}"


def _labels(asked: Sequence[str]) -> list[str | int]:
    if len(set(asked)) == len(asked):
        return list(asked)
    warn(
        f"{len(asked)} questions were asked, {len(set(asked))} of them different, so all are "
        "labelled by their positions."
    )
    return list(range(len(asked)))
