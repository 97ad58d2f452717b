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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseLanguageModel
from langchain_core.outputs import LLMResult
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable

from krag_eval.asking import timeouts
from krag_eval.core import (
    Advice,
    DocumentLike,
    InvalidInput,
    InvalidType,
    QuerySet,
    _,
    bar_of,
    check_progress,
    clipped,
    errors,
    ngettext,
    read_text,
    resolve_matcher,
    warn,
)
from krag_eval.core.matching import base, identity, joins
from krag_eval.matchers.embedding import model_name

#: ``(question, actual, predicted)`` -> whether it will do, or how well, from 0 to 1; sync or async.
#: With ``batch_size``, three lists -> a list. Or a Runnable that takes them as a dict.
Judge: TypeAlias = "Callable[[Any, Any, Any], Any] | Runnable[Any, Any]"

# What a judge is given, in this order.
_TEXTS = ("question", "actual", "predicted")
_FORMAT = 1
# What SQLite calls the "application id": whose file it is.
_OURS = 0x6B726167
# How judges are told from each other in a file, its "user version": 0 before there was a number,
# when digests were of other things. A file keeps the number that it began with.
_TOLD_BY = 1
# Each writes for some milliseconds; one that holds a file longer does something else with it.
_SECONDS_FOR_OTHERS = 10.0
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


class JudgeMatcher(base.Matcher):
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
            judges a long file part by part, and it holds for each.
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
    _reads: ClassVar[Any] = staticmethod(read_text)
    # It waits for others, and does that for many pairs at a time.
    divisible: ClassVar[bool] = False

    def __init__(
        self,
        judge: Judge,
        *,
        threshold: float = 0.5,
        version: str = "",
        prompt: str = "",
        candidates: str | base.Matcher | None = None,
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
        self.threshold = errors.number("threshold", threshold, 0, 1)
        self.candidates = None if candidates is None else _checked_gate(candidates)
        if output_key is not None:
            errors.text("output_key", output_key, "the name of a field of the judge's output")
        self.output_key = output_key
        self.batch_size = None if batch_size is None else errors.whole("batch_size", batch_size, 1)
        self.max_concurrency = errors.whole("max_concurrency", max_concurrency, 1)
        self.timeout = timeouts.check_timeout(timeout)
        self.max_calls = None if max_calls is None else errors.whole("max_calls", max_calls, 0)
        self.progress = progress
        self._identity = _identity_of(judge, name, version, prompt)
        self._identity |= {} if output_key is None else {"output_key": output_key}
        self._held, told = _held_by(judge, version)
        mark = f"#{self._held[:12]}" if self._held else ""
        self._mark = mark if told else identity.UNKNOWN
        self.cache = None if cache is None else _checked_file(cache)
        if self.cache is not None and not told:
            problem = f": not all that the judge {self._identity['judge']} holds can be told, so "
            problem += "nothing tells it from another, and the file keeps judgements of both"
            fix = Advice("pass {}, and another when the prompt or the model changes", version="1")
            raise InvalidInput("cache", problem, fix)
        self._known: dict[bytes, float] = {}
        self._unwritten: dict[bytes, float] = {}
        self._looked_through = False
        self._cost = JudgeCost()

    @property
    def cost(self) -> JudgeCost:
        """What the judge was asked so far."""
        return self._cost

    def settings(self) -> dict[str, object]:
        """Return what tells this judge from another, and which pairs it is asked about."""
        settings: dict[str, object] = dict(self._identity)
        settings["judge"] = self._identity["judge"] + self._mark
        if self.candidates is not None:
            settings["candidates"] = base.signature_at_threshold(self.candidates)
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
        return base.of_pair(self, actual, predicted, question)

    def match(self, queries: QuerySet) -> joins.Matches:
        """Have all pairs judged that have not been; the evaluator calls it once."""
        questions = base.questions_of(queries, self.signature)
        units = joins.Units.of_texts(queries)
        joins.warn_of_blank_texts(queries)
        alternative, rank = self._worth_a_call(units, queries)
        query_of = np.repeat(np.arange(len(questions)), units.n_alternatives)
        query, before = query_of[alternative], np.cumsum(units.n_predicted) - units.n_predicted
        actual = units.alternatives[alternative]
        predicted = units.predicted[before[query] + rank - 1]
        named = ~(units.blank[actual] | units.blank[predicted])
        item = np.repeat(np.arange(len(units.item_sizes)), units.item_sizes)[alternative]
        first_item = np.cumsum(units.n_items) - units.n_items
        columns = query, actual, predicted, item - first_item[query], rank - 1
        pairs = [
            _Pair((questions[q], units.values[truth], units.values[found]), q, *place)
            for q, truth, found, *place in zip(
                *(one[named].tolist() for one in columns), strict=True
            )
        ]
        keys = [self._key(pair) for pair in pairs]
        firsts: dict[bytes, _Pair] = {}
        for key, pair in zip(keys, pairs, strict=True):
            firsts.setdefault(key, pair)
        self._have_judged(firsts)
        similarity = np.array([self._known[key] for key in keys], np.float64)
        order = np.lexsort((rank[named], item[named]))
        order = order[similarity[order] > 0]
        judged = joins.Pairs(item[named][order], rank[named][order], similarity[order])
        return units.matches([judged.best_of_each()])

    def _worth_a_call(
        self, units: joins.Units, queries: QuerySet
    ) -> tuple[joins.IntArray, joins.IntArray]:
        """Return the pairs that are candidates: of which alternative, at which rank."""
        gate = self.candidates
        if gate is None:
            units.check_sizes()
            n = np.repeat(units.n_predicted, units.n_alternatives)
            alternative = np.repeat(np.arange(len(n)), n)
            return alternative, 1 + np.arange(len(alternative)) - np.repeat(np.cumsum(n) - n, n)
        with errors.muted():
            matches = base.completed(gate.match(base.alternatives_as_items(queries)))
        kept = (matches.similarity >= gate.threshold) & (matches.similarity > 0)
        return matches.item[kept], matches.rank[kept]

    def _key(self, pair: _Pair) -> bytes:
        """Return what the judgement is kept under."""
        held = [self._held] if self._held else []
        told = json.dumps([_FORMAT, self._identity, pair.texts, *held])
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest()

    def _have_judged(self, pairs: Mapping[bytes, _Pair]) -> None:
        """Ask for the judgements that are not known, and keep each as it comes."""
        with closing(_File(self.cache, thorough=not self._looked_through)) as file:
            self._looked_through = True
            self._write({}, file)  # what could not be written before
            wanted = [key for key in pairs if key not in self._known]
            self._known.update(file.read(wanted))
            missing = [key for key in wanted if key not in self._known]
            if missing and missing == wanted and file.is_of_before():
                self._tell_asked_anew(len(missing))
            self._count(kept=len(pairs) - len(missing))
            size = self.batch_size or 1
            batches = [missing[i : i + size] for i in range(0, len(missing), size)]
            if self.max_calls is not None and len(batches) > self.max_calls:
                needed = f"{len(batches):,} calls are needed for {len(missing):,} pairs"
                problem = f": {needed} that were not judged yet, and {self.max_calls:,} are allowed"
                fix = "judge fewer pairs, with {} or a smaller k, or allow more"
                advice = Advice(fix, candidates="coverage(min_run=1)")
                raise InvalidInput("max_calls", problem, advice)
            if batches:
                self._ask(batches, pairs, file)

    def _tell_asked_anew(self, n: int) -> None:
        message = ngettext(
            "{file} keeps judgements of an earlier version of krag_eval, and none of them is by "
            "this judge, as it is told from others now, on this pair: it is judged anew.",
            "{file} keeps judgements of an earlier version of krag_eval, and none of them is by "
            "this judge, as it is told from others now, on these {n} pairs: they are judged anew.",
            n,
        )
        warn(message.format(file=self.cache, n=n), _("what the file keeps stays there"))

    def _ask(
        self, batches: Sequence[list[bytes]], pairs: Mapping[bytes, _Pair], file: _File
    ) -> None:
        """Make all calls, so many at a time, unless one of them fails."""
        bar = bar_of(self.progress, total=len(batches), done=0, title="judging", unit="call")
        left, stopped = iter(batches), threading.Event()
        failures: list[BaseException] = []

        async def work() -> None:
            for batch in left:  # shared: each takes the next
                if stopped.is_set():
                    return
                asked = [pairs[key] for key in batch]
                try:
                    judged = await self._judged(asked)
                except BaseException as error:  # sys.exit in a judge would end the loop as well
                    stopped.set()
                    self._count(failed=1)
                    failures.append(error if failures else self._noted(error, asked))
                    return
                try:
                    self._write(dict(zip(batch, judged, strict=True)), file)
                except Exception as error:  # a full disk is no failure of the judge
                    stopped.set()
                    failures.append(error)
                if bar is not None:
                    bar.update()

        async def session() -> None:
            await asyncio.gather(*(work() for _ in range(self.max_concurrency)))

        with nullcontext() if bar is None else closing(bar):
            timeouts.in_loop(self.timeout, session, stopped.set)
        if failures:
            raise failures[0]

    async def _judged(self, pairs: Sequence[_Pair]) -> list[float]:
        """Return the similarities of the pairs of one call."""
        self._count(calls=1)
        answer = await timeouts.within(self.timeout, self._answer(pairs))
        key = self.output_key
        if self.batch_size is None:
            answer = [answer]
        elif isinstance(answer, Mapping) and key is not None:
            answer, key = _under(answer, key, pairs[0]), None
        no_list = isinstance(answer, str | bytes | Mapping | Set)
        if no_list or not hasattr(answer, "__len__") or len(answer) != len(pairs):
            raise _no_judgement(answer, pairs[0], f"a list of {len(pairs)} judgements")
        return [_number(one, key, pair) for one, pair in zip(answer, pairs, strict=True)]

    async def _answer(self, pairs: Sequence[_Pair]) -> Any:
        """Ask about the pairs of one call."""
        columns: Sequence[Any] = pairs[0].texts
        if self.batch_size is not None:
            columns = [[one.texts[i] for one in pairs] for i in range(len(columns))]
        if isinstance(self.judge, Runnable):
            given = dict(zip(_TEXTS, columns, strict=True))
            return await self.judge.ainvoke(given, {"callbacks": [_Usage(self._count)]})
        judge: Any = self.judge
        if any(map(inspect.iscoroutinefunction, (judge, getattr(judge, "__call__", None)))):  # noqa: B004
            return await judge(*columns)
        answer = await asyncio.to_thread(_called, judge, *columns)
        return await answer if isinstance(answer, Awaitable) else answer

    def _noted(self, error: BaseException, pairs: Sequence[_Pair]) -> BaseException:
        """Return what to raise of a failure, with a note on what it was about."""
        if isinstance(error, asyncio.CancelledError):  # of the judge's own making
            error, cause = RuntimeError("the judge was cancelled"), error
            error.__cause__ = cause
        among = "" if len(pairs) == 1 else f"one of {len(pairs)} pairs, the first of them "
        where = "this matcher" if self.cache is None else "the cache"
        kept = f"What was judged before is kept in {where}: evaluating again asks only for the rest"
        error.add_note(f"The judge failed on {among}{pairs[0]}. {kept}.")
        return error

    def _write(self, judged: Mapping[bytes, float], file: _File) -> None:
        self._count(judged=len(judged))
        with _lock:  # several threads may ask one matcher
            self._known.update(judged)
            self._unwritten.update(judged)  # what a lock or a full disk stops is written later
            unwritten = dict(self._unwritten)
        file.keep(unwritten)
        with _lock:
            for key in unwritten:
                self._unwritten.pop(key, None)

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


def _under(answer: Any, key: str, pair: _Pair) -> Any:
    """Return a field of a structured output."""
    if isinstance(answer, Mapping) and "parsed" in answer and key not in answer:
        if answer["parsed"] is None:  # LangChain's include_raw=True
            raise _no_judgement(answer.get("parsing_error"), pair, "an output that can be parsed")
        answer = answer["parsed"]
    found = answer.get(key, ...) if isinstance(answer, Mapping) else getattr(answer, key, ...)
    if found is ...:
        raise _no_judgement(answer, pair, f"an output with {key!r}")
    return found


def _number(answer: Any, key: str | None, pair: _Pair) -> float:
    value = answer if key is None else _under(answer, key, pair)
    found = -1.0
    with suppress(TypeError, ValueError):
        if not (isinstance(value, str | bytes) or np.ndim(value)):
            found = float(joins.real_numbers(value))
    if not 0.0 <= found <= 1.0:
        raise _no_judgement(value, pair, "True, False or a number from 0 to 1")
    return found


def _no_judgement(came: Any, pair: _Pair, due: str) -> InvalidInput:
    structured = not isinstance(came, str | bytes | float | int) and came is not None
    fix = Advice("name the field that holds it by {}", output_key=...) if structured else ""
    return InvalidInput("judge", f"must return {due}, got {clipped(came)} for {pair}", fix)


def _called(judge: Callable[..., Any], *columns: Any) -> Any:
    """Call a sync judge; a future cannot hold StopIteration, and would wait for ever."""
    try:
        return judge(*columns)
    except StopIteration as error:
        raise RuntimeError("the judge raised StopIteration") from error


def _checked_gate(candidates: Any) -> base.Matcher:
    try:
        gate = resolve_matcher(candidates)
    except (InvalidInput, InvalidType) as error:
        raise type(error)("candidates", error.problem, error.fix) from error
    base.check_by_pairs(gate, "candidates", "pairs are judged one by one")
    return gate


def _checked_judge(judge: Any) -> Any:
    """Return a judge; a function must be one of three texts, and name them in no other order."""
    if isinstance(judge, Runnable):
        return judge
    if isinstance(judge, type) or not callable(judge):
        what = f"be a function ({', '.join(_TEXTS)}) -> True, False or a number, or a Runnable"
        raise errors.must("judge", what, judge, "pass an instance of a class", InvalidType)
    given: dict[str, Any] = {}
    parameters: Any = "something else"
    with suppress(TypeError):
        try:
            parameters = inspect.signature(judge)
            given = parameters.bind(*_TEXTS).arguments
        except ValueError:  # of some that are written in C nothing is known
            return judge
    if not given or any(given.get(name, name) != name for name in _TEXTS):
        problem = f"is called with {', '.join(_TEXTS)}, in this order, and takes {parameters}"
        raise InvalidInput("judge", problem, "wrap it into a function that does")
    return judge


def _checked_file(cache: Any) -> str:
    if not isinstance(cache, str | os.PathLike):
        raise errors.must("cache", "be the path of a file", cache, kind=InvalidType)
    path = os.fspath(cache)
    if path in ("", ":memory:"):  # SQLite would make a file that is gone when it is closed
        raise errors.must("cache", "be the path of a file", path)
    return path


def _identity_of(judge: Any, name: str | None, version: str, prompt: str) -> dict[str, str]:
    """Return what is said of a judge in words: its name, version, model and prompt."""
    for argument, value in {"version": version, "prompt": prompt, "name": name or ""}.items():
        if not isinstance(value, str):
            raise errors.must(argument, "be text", value, kind=InvalidType)
    model, found = _parts_of(judge) if isinstance(judge, Runnable) else ("", "")
    prompt = prompt or found
    own = getattr(judge, "__name__", type(judge).__name__)
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
    identity = {
        "judge": name or model or own,
        "version": version,
        "model": model if name else "",
        "prompt": f"sha256:{digest[:12]}" if prompt else "",
    }
    return {key: value for key, value in identity.items() if value}


def _held_by(judge: Any, version: str) -> tuple[str, bool]:
    """Return a digest of what a judge holds, and whether that and its version tell it from others.

    Of a Runnable it is all that can be told: models and what is bound to them, prompts, functions.
    A version stands for the code of a function, and not for plain values that are bound to it.
    """
    if not version or isinstance(judge, Runnable):
        held, complete = identity.digest_of(judge)
        return held, complete or bool(version)
    bound = identity.bound_values(judge)
    return (identity.digest_of(bound)[0] if bound else ""), True


def _parts_of(judge: Runnable[Any, Any]) -> tuple[str, str]:
    """Return the names of the models and the prompts of a Runnable, as far as they are found."""
    with suppress(Exception):  # a Runnable that cannot be drawn says nothing
        nodes = [node.data for node in judge.get_graph().nodes.values()]
        models = [one for one in nodes if isinstance(one, BaseLanguageModel)]
        prompts = [repr(one) for one in nodes if isinstance(one, BasePromptTemplate)]
        names = "+".join(filter(None, map(model_name, models)))
        return names, re.sub(" at 0x[0-9A-Fa-f]+", "", "\n".join(prompts))
    return "", ""


class _Usage(BaseCallbackHandler):
    """Counts the tokens that models report."""

    def __init__(self, count: Callable[..., None]) -> None:
        self._count = count

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Take the usage that comes with the messages of one call."""
        for generation in (one for several in response.generations for one in several):
            usage = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
            names = ("input_tokens", "output_tokens")
            self._count(**{name: usage.get(name, 0) for name in names})


class _File:
    """Judgements in a SQLite file, each there for good once it is written; or in none.

    With a write-ahead log, readers and one writer at a time go on side by side, and a process that
    is killed leaves all that it committed (SQLite, "Write-Ahead Logging").

    Args:
        path: The file; it is made if there is none. ``None`` keeps nothing.
        thorough: Whether to look at all of its pages.

    Raises:
        InvalidInput: If it is anything else than a whole file of judgements; it is left as it is.
    """

    def __init__(self, path: str | None, *, thorough: bool) -> None:
        self.path = path
        with self._told():
            # Judgements arrive in another thread, one at a time.
            self._opened = sqlite3.connect(
                path or ":memory:", _SECONDS_FOR_OTHERS, isolation_level="IMMEDIATE",
                check_same_thread=False,
            )  # fmt: skip
        try:
            with self._told():
                self._check(thorough=thorough)
                with suppress(sqlite3.OperationalError):  # others do so right now
                    self._opened.execute("PRAGMA journal_mode = WAL")
                self._opened.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            self.close()
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
                fix = "wait for that process and run again: what is in the file stays there"
                raise self._unusable("is locked by another process", fix) from error
            fix = _CUT if code == sqlite3.SQLITE_CORRUPT else "name a file that can be written"
            raise self._unusable(f"cannot be used: {error}", fix) from error

    def _check(self, *, thorough: bool) -> None:
        """Make the table in a new file; refuse one that holds other things, or is not whole."""
        if self._state() == (0, []):
            with self._opened:
                self._opened.execute("BEGIN IMMEDIATE")
                if self._state() == (0, []):  # no other process was faster
                    self._opened.execute(_SCHEMA)
                    self._opened.execute(f"PRAGMA user_version = {_TOLD_BY}")
                    self._opened.execute(f"PRAGMA application_id = {_OURS}")
        owner, found = self._state()
        if owner != _OURS:
            problem = "is a SQLite file of something else, so it is left as it is"
            raise self._unusable(problem, "name another file")
        if found != [("table", "judgements", _SCHEMA)]:
            raise self._unusable("holds other things than the table of judgements", _CUT)
        if thorough:
            (state,) = self._opened.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise self._unusable(f"is damaged ({state.splitlines()[-1]})", _CUT)

    def _state(self) -> tuple[int, list[tuple[str, str, str]]]:
        """Return whose file it is, and all that is in it."""
        (owner,) = self._opened.execute("PRAGMA application_id").fetchone()
        return owner, self._opened.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()

    def is_of_before(self) -> bool:
        """Tell whether judges were told from each other otherwise when judgements were kept."""
        with self._told():
            (told_by,) = self._opened.execute("PRAGMA user_version").fetchone()
            (n,) = self._opened.execute("SELECT count(*) FROM judgements").fetchone()
        return bool(n) and told_by < _TOLD_BY

    def read(self, keys: Iterable[bytes]) -> dict[bytes, float]:
        """Return the judgements there are."""
        wanted = "SELECT key, similarity FROM judgements WHERE key = ?"
        with self._told():
            found = dict(row for key in keys for row in self._opened.execute(wanted, (key,)))
        wrong = [one for one in found.values() if not (isinstance(one, float) and 0 <= one <= 1)]
        if wrong:
            raise self._unusable(f"is damaged (a judgement is {clipped(wrong[0])})", _CUT)
        return found

    def keep(self, judged: Mapping[bytes, float]) -> None:
        """Write judgements; all of them, or none."""
        with self._told(), self._opened:
            replaced = "INSERT OR REPLACE INTO judgements VALUES (?, ?)"
            self._opened.executemany(replaced, judged.items())

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


_SCHEMA = "CREATE TABLE judgements (key BLOB PRIMARY KEY, similarity REAL NOT NULL) WITHOUT ROWID"
_CUT = (
    "it is left as it is: put a copy of it back, save what is in it with 'sqlite3 FILE .recover', "
    "or move it away to have all judged anew"
)
