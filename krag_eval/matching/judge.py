"""A judge as a matcher: a model, or a function that asks one, says whether a document will do.

Answers cost money and time, so each is asked for once, several at a time, and kept the moment it
comes: in memory, and in a SQLite file if there is one. LangChain loads with this module.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import re
import sqlite3
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseLanguageModel
from langchain_core.outputs import LLMResult
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from krag_eval._io import Bar, bar_of, check_progress
from krag_eval._language import _
from krag_eval.documents import DocumentLike, QuerySet, Reading, read_text
from krag_eval.errors import (
    Advice,
    InvalidInput,
    InvalidType,
    clipped,
    muted,
    number,
    text,
    warn,
    whole,
)
from krag_eval.matching.base import (
    Matcher,
    alternatives_as_items,
    completed,
    questions_of,
    resolve_matcher,
)
from krag_eval.matching.identity import UNKNOWN, bound_values, digest_of
from krag_eval.matching.joins import (
    BoolArray,
    FloatArray,
    IntArray,
    Matches,
    Units,
    real_numbers,
    warn_of_blank_texts,
)
from krag_eval.matching.timeouts import check_timeout, in_loop, within

#: ``(question, actual, predicted)`` -> whether it will do, or how well, from 0 to 1; sync or async.
#: With ``batch_size``, three lists -> a list. Or a Runnable that takes them as a dict.
Judge: TypeAlias = "Callable[[Any, Any, Any], Any] | Runnable[Any, Any]"

# What a judge is given, in this order.
_TEXTS = ("question", "actual", "predicted")
_FORMAT = 1
_ADDRESS = re.compile(" at 0x[0-9A-Fa-f]+")
# What SQLite calls the "application id": whose file it is.
_OURS = 0x6B726167
# Each writes for some milliseconds; one that holds a file longer does something else with it.
_SECONDS_FOR_OTHERS = 10.0
_KEYS_AT_ONCE = 500
# Guards the counts, and nothing that takes long.
_lock = threading.Lock()


@dataclass(frozen=True)
class JudgeCost:
    """What a judge was asked, since its matcher was made.

    Attributes:
        calls: Calls of the judge, those that failed among them.
        failed: Calls that raised, or returned what is no judgement.
        judged: Pairs that were judged; without ``batch_size``, one for each call that did not fail.
        kept: Pairs that needed no call, as they had been judged before.
        input_tokens, output_tokens: Tokens as the models within a Runnable count them; 0 where
            they say nothing, and for a function.
    """

    calls: int = 0
    failed: int = 0
    judged: int = 0
    kept: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class JudgeMatcher(Matcher):
    """Documents match when a judge says so, given the question and both texts.

    All pairs of a query are judged, each ground-truth document with each predicted one (each
    alternative of an ``AnyOf`` by itself), unless ``candidates`` says which are worth it. A pair of
    the same question and texts is judged once. Blank texts are never judged and never match.
    Texts are in NFC. The question is the label of the query: pass ``queries=`` to the evaluator.

    When a call fails, no further ones begin, those under way are waited for, and the error says in
    a note which query and pair it was about. Whatever was judged is kept: the same matcher, or
    another one with the same ``cache``, asks only for the rest.

    Args:
        judge: ``(question, actual, predicted)`` -> ``True``, ``False`` or a number from 0 to 1; a
            function, sync or async. Or a LangChain Runnable: it is invoked with a dict of these
            three texts, and returns such a value or, with ``output_key``, an object or a dict that
            has one. A sync judge is called from several threads.
        threshold: Similarity from which a pair is a match; ``True`` is 1, ``False`` 0.
        version: What else the judgement depends on, and cannot be seen. Change it with the model
            behind a function: with a version, the source of the function does not count.
        prompt: The prompt; shown as a hash. A Runnable's own is found in it.
        candidates: A matcher, or the name of one: only pairs that match under it are judged, and
            all others have similarity 0.
        output_key: The field of a structured output that holds the judgement.
        batch_size: Pairs per call. The judge is then given three lists of up to so many texts, and
            returns a list; its answers must not depend on what else is in a batch.
        max_concurrency: Calls at a time.
        timeout: Seconds that a call may take; any time if not given. One that takes longer has
            failed, with a ``TimeoutError``. It is cancelled, or its thread is given up.
        max_calls: Most calls of one evaluation; if it needs more, none is made. ``evaluate_file``
            judges part by part, and it holds for each.
        cache: A SQLite file for the judgements, made if there is none. It holds hashes and numbers,
            and no text. Several processes may use it at a time, and killing them does no harm. One
            that is damaged, or holds anything else, is refused and left as it is.
        progress: Whether to show a bar; ``None``: as the evaluation does, or in a terminal and in
            a notebook. It says how many calls there will be.
        name: What to call the judge in signatures; if not given, the name of the function, or the
            model of the Runnable. Behind it stands a digest of what the judge holds: its source,
            bound arguments, all fields of its models, without secrets.

    Raises:
        InvalidType: If the judge cannot be called, or an option is of the wrong type.
        InvalidInput: If an option is out of range, or with ``cache`` and no ``version`` not all
            that the judge holds can be told; when matching, if a query has no question, the judge
            returns anything else, more than ``max_calls`` are needed, or the cache cannot be used.

    Warns:
        KragEvalWarning: If judgements in the cache are asked for again, because an earlier version
            kept them and they may be those of another model.

    >>> def about_fees(question, actual, predicted):
    ...     return "fee" in predicted
    >>> matcher = JudgeMatcher(about_fees, version="2")
    >>> matcher.similarity("The fee is 5 euros.", "A fee of 5 euros.", "What does it cost?")
    1.0
    >>> matcher.signature
    'judge(judge=about_fees,version=2)'
    >>> matcher.cost.calls, matcher.cost.kept
    (1, 0)
    """

    name = "judge"
    # It waits for others, and does that for many pairs at a time.
    divisible: ClassVar[bool] = False

    def __init__(
        self,
        judge: Judge,
        *,
        threshold: float = 0.5,
        version: str = "",
        prompt: str = "",
        candidates: str | Matcher | None = None,
        output_key: str | None = None,
        batch_size: int | None = None,
        max_concurrency: int = 8,
        timeout: float | None = None,
        max_calls: int | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        name: str | None = None,
    ) -> None:
        check_progress(progress)
        self.judge = _checked_judge(judge)
        self.threshold = number("threshold", threshold, 0, 1)
        self.candidates = None if candidates is None else _checked_gate(candidates)
        self.output_key = None if output_key is None else text("output_key", output_key, _A_FIELD)
        self.batch_size = None if batch_size is None else whole("batch_size", batch_size, 1)
        self.max_concurrency = whole("max_concurrency", max_concurrency, 1)
        self.timeout = check_timeout(timeout)
        self.max_calls = None if max_calls is None else whole("max_calls", max_calls, 0)
        self.progress = progress
        self._identity = _identity_of(judge, name, version, prompt)
        if self.output_key is not None:
            self._identity["output_key"] = self.output_key
        self._held, told = _held_by(judge, version)
        self._mark = f"#{self._held[:12]}" if told and self._held else "" if told else UNKNOWN
        self.cache = None if cache is None else _checked_file(cache)
        if self.cache is not None and not told:
            raise InvalidInput(
                "cache",
                f": not all that the judge {self._identity['judge']} holds can be told, so nothing "
                "tells it from another, and the file keeps judgements of both",
                Advice("pass {}, and another when the prompt or the model changes", version="1"),
            )
        self._known: dict[bytes, float] = {}
        self._unwritten: dict[bytes, float] = {}
        self._looked_through = False
        self._cost = JudgeCost()

    @property
    def cost(self) -> JudgeCost:
        """What the judge was asked so far."""
        return self._cost

    @property
    def _document_reading(self) -> Reading:
        return read_text

    def settings(self) -> dict[str, object]:
        """Return what tells this judge from another, and which pairs it is asked about."""
        settings: dict[str, object] = dict(self._identity)
        settings["judge"] = self._identity["judge"] + self._mark
        gate = self.candidates
        if gate is not None:
            at = f">={float(gate.threshold)!r}" if gate.takes_threshold else ""
            settings["candidates"] = f"{gate.signature}{at}"
        return settings

    def similarity(
        self, actual: DocumentLike, predicted: DocumentLike, question: str | None = None
    ) -> float:
        """Return the judgement on one pair, in [0, 1]; a blank text has 0.

        Args:
            actual: The ground-truth document: a LangChain ``Document``, a string or a dict.
            predicted: The predicted document, likewise.
            question: The question; without one the judge is not asked.

        Raises:
            InvalidInput: If there is no question.
        """
        labels = None if question is None else [question]
        with muted():  # of one pair, a blank text needs no announcement
            matches = self.match(QuerySet.from_lists([[actual]], [[predicted]], labels))
        return float(matches.similarity.max(initial=0.0))

    def match(self, queries: QuerySet) -> Matches:
        """Have all pairs judged that have not been; the evaluator calls it once."""
        units = replace(Units.of_texts(queries), questions=questions_of(queries, self.signature))
        warn_of_blank_texts(queries)
        pairs = self._pairs_to_judge(units, queries)
        self._have_judged(pairs)
        judgements = {pair.texts: self._known[key] for key, pair in pairs.items()}

        def score(actual: IntArray, predicted: IntArray, question: str) -> FloatArray:
            truths, found = (
                [units.values[i] for i in side.tolist()] for side in (actual, predicted)
            )
            return np.array(
                [[judgements.get((question, a, p), 0.0) for p in found] for a in truths]
            )

        return units.matches([units.pairs(score, self.signature)])

    def _pairs_to_judge(self, units: Units, queries: QuerySet) -> dict[bytes, _Pair]:
        """Return the distinct pairs, by the key under which their judgement is kept."""
        gate = None if self.candidates is None else _let_through(self.candidates, queries)
        pairs: dict[bytes, _Pair] = {}
        for pair in _pairs_of(units, queries.labels, gate):
            pairs.setdefault(self._key(pair), pair)
        return pairs

    def _key(self, pair: _Pair, *, before: bool = False) -> bytes:
        """Return what the judgement is kept under, now or in files of earlier versions."""
        held = [self._held] if self._held and not before else []
        told = json.dumps([_FORMAT, self._identity, pair.texts, *held])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()

    def _have_judged(self, pairs: Mapping[bytes, _Pair]) -> None:
        """Ask for the judgements that are not known, and keep each as it comes."""
        with self._file() as file:
            missing = [key for key in pairs if key not in self._known]
            if file is not None:
                self._known.update(file.read(missing))
                missing = [key for key in missing if key not in self._known]
                self._warn_of_earlier([pairs[key] for key in missing], file)
            self._count(kept=len(pairs) - len(missing))
            size = self.batch_size or 1
            batches = [missing[i : i + size] for i in range(0, len(missing), size)]
            self._check_calls(len(batches), len(missing))
            if batches:
                self._ask(batches, pairs, file)

    def _file(self) -> AbstractContextManager[_File | None]:
        """Open the cache, if there is one, and write what could not be written before."""
        if self.cache is None:
            return nullcontext()
        file = _File(self.cache, thorough=not self._looked_through)
        self._looked_through = True
        try:
            file.keep(self._unwritten)
        except InvalidInput:
            file.close()
            raise
        self._unwritten = {}
        return file

    def _warn_of_earlier(self, missing: Sequence[_Pair], file: _File) -> None:
        """Say which judgements are asked for again, as they may be those of another model."""
        if self._held and missing:
            n = len(file.read(self._key(pair, before=True) for pair in missing))
            if n:
                told = _(
                    "{n} judgements in {file} are asked for again: an earlier version of krag_eval "
                    "kept them by the name and the prompt of the judge {judge}, and they may be "
                    "those of another model or of other settings."
                )
                warn(told.format(n=n, file=file.path, judge=self._identity["judge"]))

    def _check_calls(self, n_calls: int, n_pairs: int) -> None:
        if self.max_calls is not None and n_calls > self.max_calls:
            raise InvalidInput(
                "max_calls",
                f": {n_calls:,} calls are needed for {n_pairs:,} pairs that were not judged yet, "
                f"and {self.max_calls:,} are allowed",
                Advice(
                    "judge fewer pairs, with {} or a smaller k, or allow more",
                    candidates="coverage(min_run=1)",
                ),
            )

    def _ask(
        self, batches: Sequence[list[bytes]], pairs: Mapping[bytes, _Pair], file: _File | None
    ) -> None:
        bar = bar_of(self.progress, total=len(batches), done=0, title="judging", unit="call")
        session = _Session(self, batches, pairs, file, bar)
        try:
            in_loop(self.timeout, session.run, session.stop)
        finally:
            if bar is not None:
                bar.close()
        if session.failure is not None:
            raise session.failure

    def _keep(self, judged: Mapping[bytes, float], file: _File | None) -> None:
        self._known.update(judged)
        self._count(judged=len(judged))
        if file is not None:
            self._unwritten.update(judged)  # what a lock or a full disk stops is written later
            file.keep(self._unwritten)
            self._unwritten = {}

    def _count(self, **more: int) -> None:
        with _lock:
            counts = asdict(self._cost)
            self._cost = replace(self._cost, **{name: counts[name] + n for name, n in more.items()})


class _Pair(NamedTuple):
    """A pair of texts, the question, and where it stands first."""

    texts: tuple[str, str, str]
    query: int
    item: int
    position: int

    def __str__(self) -> str:
        return (
            f"the question {clipped(self.texts[0])} (query {self.query}, counted from 0), "
            f"actual_docs[{self.query}][{self.item}] and "
            f"predicted_docs[{self.query}][{self.position}]"
        )


class _Session:
    """The calls of one evaluation, so many at a time.

    Args:
        matcher: Whose judge is asked.
        batches: The keys of the pairs of each call.
        pairs: The pairs, by their keys.
        file: Where judgements are kept.
        bar: What shows how far it has come.
    """

    def __init__(
        self,
        matcher: JudgeMatcher,
        batches: Sequence[list[bytes]],
        pairs: Mapping[bytes, _Pair],
        file: _File | None,
        bar: Bar | None,
    ) -> None:
        self.matcher, self.pairs, self.file, self.bar = matcher, pairs, file, bar
        self.stopped = False
        self.failure: BaseException | None = None
        self._left = iter(batches)
        self._n_at_once = min(matcher.max_concurrency, len(batches))
        self._usage = _Usage(matcher._count)

    async def run(self) -> None:
        """Make all calls, unless one of them fails."""
        await asyncio.gather(*(self._work() for _ in range(self._n_at_once)))

    def stop(self) -> None:
        """Begin no other call."""
        self.stopped = True

    async def _work(self) -> None:
        for batch in self._left:  # shared: each takes the next
            if self.stopped:
                return
            await self._judge(batch)

    async def _judge(self, batch: list[bytes]) -> None:
        pairs = [self.pairs[key] for key in batch]
        self.matcher._count(calls=1)
        try:
            answer = await within(self.matcher.timeout, self._answer(pairs))
            judged = dict(zip(batch, self._numbers(answer, pairs), strict=True))
        except asyncio.CancelledError as error:  # of the judge's own making
            cancelled = RuntimeError("the judge was cancelled")
            cancelled.__cause__ = error
            self._fail(cancelled, pairs)
        except BaseException as error:  # sys.exit in a judge would end the loop as well
            self._fail(error, pairs)
        else:
            self._keep(judged)

    def _keep(self, judged: Mapping[bytes, float]) -> None:
        try:
            self.matcher._keep(judged, self.file)
        except Exception as error:  # a full disk is no failure of the judge
            self.failure, self.stopped = self.failure or error, True
        if self.bar is not None:
            self.bar.update()

    def _fail(self, error: BaseException, pairs: Sequence[_Pair]) -> None:
        self.stopped = True
        self.matcher._count(failed=1)
        if self.failure is None:
            self.failure = error
            among = "" if len(pairs) == 1 else f"one of {len(pairs)} pairs, the first of them "
            where = "the cache" if self.file is not None else "this matcher"
            error.add_note(
                f"The judge failed on {among}{pairs[0]}. What was judged before is kept in "
                f"{where}: evaluating again asks only for the rest."
            )

    async def _answer(self, pairs: Sequence[_Pair]) -> Any:
        """Ask about the pairs of one call."""
        judge = self.matcher.judge
        columns: Sequence[Any] = pairs[0].texts
        if self.matcher.batch_size is not None:
            columns = [[one.texts[i] for one in pairs] for i in range(len(columns))]
        if isinstance(judge, Runnable):
            given = dict(zip(_TEXTS, columns, strict=True))
            return await judge.ainvoke(given, {"callbacks": [self._usage]})
        if _is_async(judge):
            return await judge(*columns)
        answer = await asyncio.to_thread(_called, judge, *columns)
        return await answer if isinstance(answer, Awaitable) else answer

    def _numbers(self, answer: Any, pairs: Sequence[_Pair]) -> list[float]:
        """Return the similarity of each pair, from what the judge returned."""
        several = self.matcher.batch_size is not None
        key = self.matcher.output_key
        if several and isinstance(answer, Mapping) and key is not None:
            answer = _under(answer, key, pairs[0])
            key = None
        answers = answer if several else [answer]
        no_list = isinstance(answers, str | bytes | Mapping | Set)
        if not hasattr(answers, "__len__") or no_list:
            raise _no_judgement(answers, pairs[0], f"a list of {len(pairs)} judgements")
        if len(answers) != len(pairs):
            problem = f": it was given {len(pairs)} pairs and returned {len(answers)} judgements"
            raise InvalidInput("judge", problem, "let it return one for each pair, in their order")
        return [_number(one, key, pair) for one, pair in zip(answers, pairs, strict=True)]


_A_FIELD = "the name of a field of the judge's output"


def _under(answer: Any, key: str, pair: _Pair) -> Any:
    """Return a field of a structured output."""
    if isinstance(answer, Mapping) and "parsed" in answer and key not in answer:
        if answer["parsed"] is None:  # LangChain's include_raw=True
            raise _no_judgement(answer.get("parsing_error"), pair, "an output that can be parsed")
        answer = answer["parsed"]
    if isinstance(answer, Mapping) and key in answer:
        return answer[key]
    if not isinstance(answer, Mapping) and hasattr(answer, key):
        return getattr(answer, key)
    raise _no_judgement(answer, pair, f"an output with {key!r}")


def _number(answer: Any, key: str | None, pair: _Pair) -> float:
    value = answer if key is None else _under(answer, key, pair)
    try:
        if isinstance(value, str | bytes) or np.ndim(value):
            raise TypeError
        found = float(real_numbers(value))
    except (TypeError, ValueError):
        raise _no_judgement(value, pair, "True, False or a number from 0 to 1") from None
    if not 0.0 <= found <= 1.0:
        raise _no_judgement(value, pair, "a number from 0 to 1")
    return found


def _no_judgement(came: Any, pair: _Pair, due: str) -> InvalidInput:
    structured = not isinstance(came, str | bytes | float | int) and came is not None
    return InvalidInput(
        "judge",
        f"must return {due}, got {clipped(came)} for {pair}",
        Advice("name the field that holds it by {}", output_key=...) if structured else "",
    )


def _called(judge: Callable[..., Any], *columns: Any) -> Any:
    """Call a sync judge; a future cannot hold StopIteration, and would wait for ever."""
    try:
        return judge(*columns)
    except StopIteration as error:
        raise RuntimeError("the judge raised StopIteration") from error


def _is_async(judge: Any) -> bool:
    return inspect.iscoroutinefunction(judge) or inspect.iscoroutinefunction(
        getattr(judge, "__call__", None)  # noqa: B004
    )


def _pairs_of(
    units: Units, labels: Sequence[Any], gate: Sequence[BoolArray] | None
) -> Iterator[_Pair]:
    """Yield the pairs of all queries, but for blank texts and what the gate stops."""
    assert units.questions is not None
    first_item = first_alternative = first_predicted = 0
    counts = zip(units.n_items.tolist(), units.n_predicted.tolist(), strict=True)
    for query, (n_items, n_predicted) in enumerate(counts):
        sizes = units.item_sizes[first_item : first_item + n_items]
        items = np.repeat(np.arange(n_items), sizes).tolist()
        last = first_alternative + len(items)
        actual = units.alternatives[first_alternative:last].tolist()
        predicted = units.predicted[first_predicted : first_predicted + n_predicted].tolist()
        for row, (item, truth) in enumerate(zip(items, actual, strict=True)):
            for position, found in enumerate(predicted):
                stopped = gate is not None and not gate[query][row, position]
                if not (stopped or units.blank[truth] or units.blank[found]):
                    texts = units.questions[query], units.values[truth], units.values[found]
                    yield _Pair(texts, query, item, position)
        first_item, first_alternative = first_item + n_items, last
        first_predicted += n_predicted


def _let_through(gate: Matcher, queries: QuerySet) -> list[BoolArray]:
    """Return, per query, which pairs match under the gate; shape (alternatives, predicted)."""
    alone = alternatives_as_items(queries)
    with muted():
        matches = completed(gate.match(alone))
    kept = (matches.similarity >= gate.threshold) & (matches.similarity > 0)
    item, rank = matches.item[kept], matches.rank[kept]
    ends = np.cumsum(alone.n_items)
    bounds = np.searchsorted(item, [0, *ends.tolist()]).tolist()
    passed = []
    shapes = zip(ends.tolist(), alone.n_items.tolist(), alone.n_predicted.tolist(), strict=True)
    for query, (end, n_items, n_predicted) in enumerate(shapes):
        found = slice(bounds[query], bounds[query + 1])
        block = np.zeros((n_items, n_predicted), np.bool_)
        block[item[found] - (end - n_items), rank[found] - 1] = True
        passed.append(block)
    return passed


def _checked_gate(candidates: Any) -> Matcher:
    try:
        gate = resolve_matcher(candidates)
    except (InvalidInput, InvalidType) as error:
        raise type(error)("candidates", error.problem, error.fix) from error
    if gate.union:
        raise InvalidInput(
            "candidates",
            f": pairs are judged one by one, and for {gate.signature} documents count together",
            "leave out union=True",
        )
    return gate


def _checked_judge(judge: Any) -> Any:
    if isinstance(judge, type) or not (callable(judge) or isinstance(judge, Runnable)):
        raise InvalidType(
            "judge",
            f"must be a function ({', '.join(_TEXTS)}) -> True, False or a number, or a "
            f"LangChain Runnable, got {clipped(judge)}",
            "pass an instance of this class" if isinstance(judge, type) else "",
        )
    if not isinstance(judge, Runnable):
        _check_parameters(judge)
    return judge


def _check_parameters(judge: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called with three texts, or names them in another order."""
    try:
        signature = inspect.signature(judge)
    except (TypeError, ValueError):
        return  # of some that are written in C nothing is known
    try:
        given = signature.bind(*_TEXTS).arguments
    except TypeError:
        given = {}
    if not given or any(given.get(name, name) != name for name in _TEXTS):
        problem = f"is called with {', '.join(_TEXTS)}, in this order, and takes {signature}"
        raise InvalidInput("judge", problem, "wrap it into a function that does")


def _checked_file(cache: Any) -> str:
    if not isinstance(cache, str | os.PathLike):
        raise InvalidType("cache", f"must be the path of a file, got {clipped(cache)}")
    path = os.fspath(cache)
    if path in ("", ":memory:"):  # SQLite would make a file that is gone when it is closed
        raise InvalidInput("cache", f"must be the path of a file, got {path!r}")
    return path


def _identity_of(judge: Any, name: str | None, version: str, prompt: str) -> dict[str, str]:
    """Return what is said of a judge in words: its name, version, model and prompt."""
    given = {"version": version, "prompt": prompt, "name": "" if name is None else name}
    for argument, value in given.items():
        if not isinstance(value, str):
            raise InvalidType(argument, f"must be text, got {clipped(value)}")
    parts = _parts_of(judge) if isinstance(judge, Runnable) else {}
    model = parts.pop("model", "")
    own = getattr(judge, "__name__", type(judge).__name__)
    prompt = prompt or parts.get("prompt", "")
    identity = {"judge": name or model or own, "version": version}
    identity |= {"model": model} if name else {}
    identity |= parts | {"prompt": _hashed(prompt) if prompt else ""}
    return {key: value for key, value in identity.items() if value}


def _held_by(judge: Any, version: str) -> tuple[str, bool]:
    """Return a digest of what a judge holds, and whether that and its version tell it from others.

    Of a Runnable it is all that can be told: models and what is bound to them, prompts, functions.
    A version stands for the code of a function, and not for plain values that are bound to it.
    """
    if not version or isinstance(judge, Runnable):
        held, complete = digest_of(judge)
        return held, complete or bool(version)
    bound = bound_values(judge)
    return (digest_of(bound)[0] if bound else ""), True


def _parts_of(judge: Runnable[Any, Any]) -> dict[str, str]:
    """Return the prompt and the model that are found in a Runnable, as far as they are."""
    found: dict[str, str] = {}
    with suppress(Exception):  # a Runnable that cannot be drawn says nothing
        nodes = [node.data for node in judge.get_graph().nodes.values()]
        prompts = [
            _ADDRESS.sub("", repr(one)) for one in nodes if isinstance(one, BasePromptTemplate)
        ]
        models = [one for one in nodes if isinstance(one, BaseLanguageModel)]
        found["prompt"] = "\n".join(prompts)
        found["model"] = "+".join(filter(None, map(_model_name, models)))
        heat = {str(one) for model in models
                if (one := getattr(model, "temperature", None)) is not None}  # fmt: skip
        found["temperature"] = "+".join(sorted(heat))
    return {key: value for key, value in found.items() if value}


def _model_name(model: BaseLanguageModel[Any]) -> str:
    names = (getattr(model, attribute, None) for attribute in ("model", "model_name"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _hashed(prompt: str) -> str:
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    return f"sha256:{digest[:12]}"


class _Usage(BaseCallbackHandler):
    """Counts the tokens that models report."""

    def __init__(self, count: Callable[..., None]) -> None:
        self._count = count

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Take the usage that comes with the messages of one call."""
        for generation in (one for several in response.generations for one in several):
            usage = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
            self._count(
                input_tokens=usage.get("input_tokens", 0),
                output_tokens=usage.get("output_tokens", 0),
            )


class _File:
    """Judgements in a SQLite file, each there for good once it is written.

    With a write-ahead log, readers and one writer at a time go on side by side, and a process that
    is killed leaves all that it committed (SQLite, "Write-Ahead Logging"). A file is made whole or
    not at all, so that an empty one is never taken for a new one.

    Args:
        path: The file; it is made if there is none.
        thorough: Whether to look at all of its pages.

    Raises:
        InvalidInput: If it is anything else than a whole file of judgements; it is left as it is.
    """

    def __init__(self, path: str, *, thorough: bool) -> None:
        self.path = path
        with self._told():
            if not os.path.exists(path):
                self._make()
            if os.path.getsize(path) == 0:
                raise self._unusable("is empty: it was cut off, or is no file of judgements", _CUT)
            self._opened = self._open()
            try:
                self._check(thorough=thorough)
                _switched_to_wal(self._opened)
                self._opened.execute("PRAGMA synchronous = NORMAL")
            except BaseException:
                self._opened.close()
                raise

    def _unusable(self, problem: str, fix: str) -> InvalidInput:
        return InvalidInput("cache", f": {self.path} {problem}", fix)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say of what SQLite and the system refuse which file it is, and what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise self._unusable("is locked by another process", _LOCKED) from error
            if code == sqlite3.SQLITE_CORRUPT:
                raise self._unusable(f"is damaged ({error})", _CUT) from error
            raise self._unusable(f"cannot be used: {error}", _MENDED) from error

    def _open(self, path: str = "") -> sqlite3.Connection:
        # Judgements arrive in another thread, one at a time.
        return sqlite3.connect(
            path or self.path, _SECONDS_FOR_OTHERS, isolation_level=None, check_same_thread=False
        )

    def _make(self) -> None:
        """Make a new file beside, and give it its name if no other process was faster."""
        place = os.path.realpath(self.path)
        made = f"{place}.{uuid.uuid4().hex}"
        try:
            with closing(self._open(made)) as opened:
                opened.execute(_SCHEMA)
                opened.execute(f"PRAGMA application_id = {_OURS}")
            try:
                os.link(made, place)
            except FileExistsError:
                pass
            except OSError:  # a file system without links
                if not os.path.exists(place):
                    os.rename(made, place)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(made)

    def _check(self, *, thorough: bool) -> None:
        """Refuse a file that holds other things, or not all pages that it should have."""
        (owner,) = self._opened.execute("PRAGMA application_id").fetchone()
        if owner != _OURS:
            problem = "is a SQLite file of something else, so it is left as it is"
            raise self._unusable(problem, "name another file")
        found = self._opened.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()
        if found != [("table", "judgements", _SCHEMA)]:
            there = ", ".join(f"{kind} {name}" for kind, name, _ in found) or "nothing"
            problem = f"was changed: it holds {there}, and not the table of judgements alone"
            raise self._unusable(problem, _CUT)
        if thorough:
            (state,) = self._opened.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise self._unusable(f"is damaged ({state.splitlines()[-1]})", _CUT)

    def read(self, keys: Iterable[bytes]) -> dict[bytes, float]:
        """Return the judgements there are."""
        wanted = list(keys)
        found: dict[bytes, float] = {}
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._told():
                rows = self._opened.execute(
                    f"SELECT key, similarity FROM judgements WHERE key IN ({marks})", some
                ).fetchall()
            found.update(rows)
        wrong = [one for one in found.values() if not (isinstance(one, float) and 0 <= one <= 1)]
        if wrong:
            raise self._unusable(f"is damaged (a judgement is {clipped(wrong[0])})", _CUT)
        return found

    def keep(self, judged: Mapping[bytes, float]) -> None:
        """Write judgements; all of them, or none."""
        if not judged:
            return
        with self._told(), closing(self._opened.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                cursor.executemany(
                    "INSERT OR REPLACE INTO judgements VALUES (?, ?)", judged.items()
                )
                cursor.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has ended it already
                    cursor.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_SCHEMA = "CREATE TABLE judgements (key BLOB PRIMARY KEY, similarity REAL NOT NULL) WITHOUT ROWID"
_CUT = (
    "it is left as it is: put a copy of it back, save what is in it with 'sqlite3 FILE .recover', "
    "or move it away to have all judged anew"
)
_MENDED = "let this user read and write it, or name another file"
_LOCKED = (
    "wait until that process is done, or end it, and run again: what is in the file stays there"
)


def _switched_to_wal(opened: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; SQLite does not wait for others that do so right now."""
    until = time.monotonic() + _SECONDS_FOR_OTHERS
    while True:
        try:
            opened.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
