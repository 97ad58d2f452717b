"""Wrapping: a function or chain that reports what it returns as a LangChain retriever does.

This room knows LangChain's callbacks. It is of no use without LangChain, so LangChain loads with
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    patch_config,
)

from krag_eval.documents import as_document
from krag_eval.retrievers.calling import Call, RetrieverLike

__all__ = ["Wrapped"]


class Wrapped(Runnable[Any, Any]):
    """Runs a retriever between the two events of one; what it returns is passed on untouched.

    Args:
        watcher: A callback handler that sees it even if the config does not name it.
        retriever: What is run.
        name: What to call it; its own name if ``None``.
        input_key: The key of the question in its input, if that is a dict.
        output_key: The key of the documents in its answer, if that is a dict.
    """

    def __init__(
        self,
        watcher: BaseCallbackHandler,
        retriever: RetrieverLike,
        name: str | None,
        *,
        input_key: str | None,
        output_key: str | None,
    ) -> None:
        self._watcher = watcher
        self._call = Call.of(retriever, input_key, output_key)
        self.name = name or self._call.runnable.get_name()

    def __call__(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, so that a function stays one."""
        return self.invoke(input, config, **kwargs)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run it, and report what it returns."""
        config = ensure_config(config)
        run = self._watched(get_callback_manager_for_config(config)).on_retriever_start(
            None, self._question(input), name=self.name, run_id=config.pop("run_id", None)
        )
        try:
            inner = patch_config(config, callbacks=run.get_child())
            answer = self._call.runnable.invoke(input, inner, **kwargs)
            documents = self._documents(answer)
        except BaseException as error:
            run.on_retriever_error(error)
            raise
        run.on_retriever_end(documents)
        return answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Do as :meth:`invoke`, asynchronously."""
        config = ensure_config(config)
        manager = self._watched(get_async_callback_manager_for_config(config))
        run = await manager.on_retriever_start(
            None, self._question(input), name=self.name, run_id=config.pop("run_id", None)
        )
        try:
            inner = patch_config(config, callbacks=run.get_child())
            answer = await self._call.runnable.ainvoke(input, inner, **kwargs)
            documents = self._documents(answer)
        except BaseException as error:
            await run.on_retriever_error(error)
            raise
        await run.on_retriever_end(documents)
        return answer

    def _watched(self, manager: Any) -> Any:
        if not any(handler is self._watcher for handler in manager.handlers):
            manager.add_handler(self._watcher, inherit=True)
        return manager

    def _question(self, given: Any) -> str:
        key = self._call.input_key
        if isinstance(given, Mapping):
            texts = [text for text in given.values() if isinstance(text, str)]
            if key is not None and isinstance(given.get(key), str):
                return str(given[key])
            if key is None and len(texts) == 1:
                return texts[0]
        return given if isinstance(given, str) else str(given)

    def _documents(self, answer: Any) -> list[Document]:
        return [as_document(one) for one in self._call.documents(answer)]
