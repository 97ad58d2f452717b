"""Running: a retriever over the questions of a data set, to a result.

This room wires questions, retriever, checkpoint and evaluator. It must not know metrics.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

from krag_eval._errors import clipped, muted, unknown_name, warn
from krag_eval._io import bar_of, check_progress
from krag_eval.evaluator import OfflineRetrievalEvaluator
from krag_eval.results.latency import RetrievalRun
from krag_eval.retrievers.calling import Call
from krag_eval.retrievers.questions import Questions
from krag_eval.scoring.cutoffs import check_cutoffs

if TYPE_CHECKING:
    from krag_eval.documents import DocumentLike
    from krag_eval.matching.base import Matcher
    from krag_eval.results.result import EvaluationResult
    from krag_eval.retrievers.asking import Answers, Keeper
    from krag_eval.scoring.metrics import Metric

__all__ = ["Run"]

_ON_ERROR = ("raise", "record")


@dataclass(frozen=True)
class Run:
    """One way to ask the questions and to evaluate the answers, checked.

    Its fields are the arguments of :func:`~krag_eval.evaluate_retriever`. It can be run again, for
    the queries that failed.
    """

    call: Call
    questions: Questions
    _: KW_ONLY
    k: Any
    matcher: str | Matcher | None
    metrics: Iterable[str | Metric] | None
    on_error: str
    max_concurrency: int | None
    config: Any
    progress: bool | None
    checkpoint: str | os.PathLike[str] | None
    options: Mapping[str, Any]
    title: str = "retrieving"

    def __post_init__(self) -> None:
        if self.on_error not in _ON_ERROR:
            raise ValueError(unknown_name("on_error", self.on_error, _ON_ERROR))
        _check_concurrency(self.max_concurrency)
        _check_config(self.config, len(self.questions))
        check_progress(self.progress)
        _check_checkpoint(self.checkpoint)
        # Iterators would be empty the second time.
        object.__setattr__(self, "k", check_cutoffs(self.k))
        if self.metrics is not None:
            object.__setattr__(self, "metrics", list(self.metrics))
        self._check_evaluation()

    def _check_evaluation(self) -> None:
        """Refuse before anything is asked what could not be evaluated afterwards."""
        with muted():  # what there is to warn of is said when it is evaluated
            self._evaluator([[] for _ in self.questions.texts])
            if self.metrics is not None:
                OfflineRetrievalEvaluator([["a"]], [[]]).evaluate(self.k, metrics=self.metrics)

    def now(self, known: Answers | None = None) -> EvaluationResult:
        """Ask what is not known, and evaluate everything."""
        from krag_eval.retrievers.asking import Asking

        if self.call.is_async_only:
            _check_no_loop()
            return asyncio.run(self.soon(known))
        with self._gathering(known) as answers:
            missing = answers.missing()
            asking = Asking(self.call, self.questions.texts, answers)
            asking.batch(missing, config=self._config(missing))
            _raise_what_stopped(answers, self.questions.labels)
        return self._result(answers)

    async def soon(self, known: Answers | None = None) -> EvaluationResult:
        """Do as :meth:`now`, asking asynchronously."""
        from krag_eval.retrievers.asking import Asking

        with self._gathering(known) as answers:
            missing = answers.missing()
            asking = Asking(self.call, self.questions.texts, answers)
            await asking.abatch(missing, config=self._config(missing, _n_threads()))
            _raise_what_stopped(answers, self.questions.labels)
        return self._result(answers)

    def _gathering(self, known: Answers | None) -> Answers:
        """Return where answers go, with those that need not be asked for."""
        from krag_eval.retrievers.asking import Answers

        n_queries = len(self.questions)
        answers = Answers(n_queries, stop_at_failure=self.on_error == "raise")
        keeper = self._keeper(answers)
        for position, documents in enumerate(known.documents if known is not None else ()):
            if known is not None and documents is not None and answers.documents[position] is None:
                answers.known(position, documents, known.seconds[position])
                if keeper is not None:  # its file was deleted meanwhile
                    keeper.append(position, documents, float(known.seconds[position]))
        done = n_queries - len(answers.missing())
        bar = bar_of(self.progress, total=n_queries, done=done, title=self.title)
        return answers.gather(keeper, bar)

    def _keeper(self, answers: Answers) -> Keeper | None:
        if self.checkpoint is None:
            return None
        from krag_eval.retrievers.checkpoint import Checkpoint, purpose_of

        checkpoint = Checkpoint(self.checkpoint, purpose_of(self.call, self.questions.texts))
        for position, (documents, seconds) in checkpoint.answers.items():
            answers.known(position, documents, seconds)
        return checkpoint

    def _config(self, positions: list[int], default: int | None = None) -> Any:
        """Return LangChain's config for the queries at these positions; nobody's is changed."""
        several = not isinstance(self.config, Mapping | None)
        configs = [self.config[i] for i in positions] if several else [self.config or {}]
        limited = []
        for config in configs:
            limit = self.max_concurrency or config.get("max_concurrency") or default
            limited.append({**config, "max_concurrency": limit} if limit else {**config})
        return limited if several else limited[0]

    def _result(self, answers: Answers) -> EvaluationResult:
        _warn_of_failures(answers, self.questions.labels)
        evaluator = self._evaluator([documents or [] for documents in answers.documents])
        run = RetrievalRun(
            seconds=answers.seconds,
            failures=tuple(failure for _, failure in sorted(answers.failures.items())),
            again=_Again(self, answers) if answers.failures else None,
        )
        return replace(evaluator.evaluate(self.k, metrics=self.metrics), retrieval=run)

    def _evaluator(self, predicted: list[list[DocumentLike]]) -> OfflineRetrievalEvaluator:
        questions = self.questions
        options = {"queries": questions.labels, **questions.defaults, **self.options}
        if self.matcher is not None:
            options["matcher"] = self.matcher
        return OfflineRetrievalEvaluator(questions.actual, predicted, **options)


@dataclass(frozen=True)
class _Again:
    """The run and its answers: what a result needs to ask its failed queries again."""

    run: Run
    answers: Answers

    def now(self, **changes: Any) -> EvaluationResult:
        return self._changed(changes).now(self.answers)

    async def soon(self, **changes: Any) -> EvaluationResult:
        return await self._changed(changes).soon(self.answers)

    def _changed(self, changes: dict[str, Any]) -> Run:
        allowed = ("on_error", "max_concurrency", "config", "progress")
        for name in changes:
            if name not in allowed:
                raise TypeError(unknown_name("an argument of retry_failed", name, allowed))
        return replace(self.run, **changes)


def _raise_what_stopped(answers: Answers, labels: Sequence[str | int]) -> None:
    if answers.unkept is not None:
        raise answers.unkept
    if answers.stopped and answers.first_error is not None:
        position, error = answers.first_error
        error.add_note(
            f"The retriever failed on query {clipped(labels[position])} (position {position}). "
            'on_error="record" asks the others and lists what failed.'
        )
        raise error


def _warn_of_failures(answers: Answers, labels: Sequence[str | int]) -> None:
    if not answers.failures:
        return
    position, failure = min(answers.failures.items())
    warn(
        f"{len(answers.failures)} of {len(labels)} queries failed and count as nothing retrieved; "
        f"the first is {clipped(labels[position])}: {failure.type}: {clipped(failure.message)}. "
        "result.failures lists them, result.retry_failed() asks them again."
    )


def _check_concurrency(value: object) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (whole and int(value) >= 1):  # type: ignore[call-overload]
        raise ValueError(
            "max_concurrency must be a whole number of at least 1, or None for LangChain's "
            f"default, got {value!r}."
        )


def _check_config(config: object, n_queries: int) -> None:
    if isinstance(config, Mapping | None):
        return
    if not isinstance(config, list | tuple) or not all(isinstance(one, Mapping) for one in config):
        raise TypeError(
            "config must be a LangChain config such as {'callbacks': […], 'tags': […]}, or a list "
            f"with one per question, got {clipped(config)}."
        )
    if len(config) != n_queries:
        raise ValueError(
            f"config must have one config per question, got {len(config)} for {n_queries} "
            "questions; a single config serves all."
        )


def _check_checkpoint(checkpoint: object) -> None:
    if not isinstance(checkpoint, str | os.PathLike | None) or checkpoint == "":
        raise TypeError(
            f'checkpoint must be the path of a file, such as "run.jsonl", got {checkpoint!r}.'
        )


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "the retriever is an async function and an event loop is running, as in a notebook; write "
        "await aevaluate_retriever(…) instead."
    )


def _n_threads() -> int:
    # What a thread pool, and so LangChain's batch, runs at the same time.
    return min(32, (os.cpu_count() or 1) + 4)
