"""``krag-eval sweep``: splitters and retrievers named in a file, tried on the same questions."""

from __future__ import annotations

import inspect
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import click

from krag_eval.cli import options, output, reading
from krag_eval.cli.shell import printable
from krag_eval.core import (
    PLAN_OPTIONS,
    Advice,
    Cut,
    DatasetError,
    Place,
    _,
    check_options,
    clipped,
    declared,
    option,
    page_of,
)
from krag_eval.core.options import Sampling

# What a file holds beside the arguments of sweep() that a file can spell.
_NEEDED = ("corpus", "questions", "splitters", "retrievers")
_SETTINGS = (
    *(*declared(Cut), *declared(Sampling), "metric", "baseline"),
    *("folder", "max_concurrency", "timeout", "on_error"),
    *PLAN_OPTIONS,
)
_EXAMPLE = 'bm25 = "my_rag:make_bm25", or with arguments {call = "my_rag:make_bm25", b = 0.5}'
# Packages whose public functions a file may name, unless they write files.
_PUBLIC = ("langchain_text_splitters", "bm25s", "krag_eval")
_WRITING = ("evaluate_file",)


@options.command(
    "Try splitters with retrievers on the same questions.",
    "krag-eval sweep sweep.toml --folder kept --plot pareto.png",
)
def sweep(
    file: str,
    folder: str | None = option(
        "Keep answers and results there: a sweep that was killed goes on where it stopped.", "DIR"
    ),
    n_jobs: int | None = option(
        "Processes that work on cells at the same time, -1 for one per core.",
        "N",
        flags=("--jobs",),
    ),
    timeout: float | None = option(
        "Seconds that an answer may take; past them the question failed.  [default: any time]",
        "SECONDS",
    ),
    allow_module: tuple[str, ...] = option(
        "Let FILE name functions of this module or package, too. Repeatable.", "NAME"
    ),
    outputs: Any = options.saving(
        csv="Save the table, a row per cell.",
        plot="Draw quality against context, as .png, .svg or .pdf.",
        report=True,
    ),
) -> None:
    """Try every splitter in FILE with every retriever, and print one table.

    FILE is TOML: "corpus" names text files, or JSONL of documents; "questions" a file with the
    passages that answer them. [splitters] and [retrievers] name functions as "module:function",
    of a Python file beside FILE: its code is run, so FILE is code, too. Every other argument of
    sweep in Python may stand there too; paths are seen from FILE.
    """
    from krag_eval import sweep as swept
    from krag_eval.report import write_report
    from krag_eval.sweeping.page import reused
    from krag_eval.sweeping.picture import pareto_points

    with _importing_beside(file):
        arguments = _Reader(file, allow_module).arguments()
        typed = {"folder": folder, "timeout": timeout}
        arguments |= {name: one for name, one in typed.items() if one is not None}
        found = swept(**arguments, n_jobs=n_jobs)
    if outputs.format != "table":
        for line in reused(found):
            click.echo(printable(line), err=True)
    table, choice = found.table.reset_index(), found.choice
    numbers = ("value", "held_out", "n_chosen_by", "n_held_out", "overrated", "shift")
    told = None if choice is None else {
        "cell": choice.name,
        "metric": choice.metric,
        **{name: getattr(choice, name) for name in numbers},
    }  # fmt: skip
    compared = found.comparison
    output.emit(
        outputs,
        lambda: page_of(found),
        lambda: {
            "metric": found.metric,
            "baseline": found.baseline,
            "reused": found.n_reused,
            "asked": found.n_asked,
            "cells": output.records_of(table),
            "choice": told,
            "differences": [] if compared is None else output.records_of(compared.table),
        },
        lambda: table,
        csv=(lambda: table, _("the table of cells")),
        plot=(lambda ax: pareto_points(found, ax=ax), _("quality against context")),
        report=partial(write_report, found),
    )


@dataclass(frozen=True)
class _Reader:
    """Reads what a file names; ``allowed`` are modules that it may name functions of."""

    file: str
    allowed: Sequence[str] = ()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of sweep(), with files read and functions imported."""
        try:
            with open(self.file, "rb") as opened:
                settings = tomllib.load(opened)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise self._refused(f"is no TOML: {error}") from error
        needed, known = ", ".join(_NEEDED), (*_NEEDED, *_SETTINGS)
        for name in _NEEDED:
            if name not in settings:
                raise self._refused(f"has no {name!r}", f"it needs {needed}")
        for name in settings:
            if name not in known:
                problem = f"has {clipped(name)}, which is none of {', '.join(known)}"
                raise self._refused(problem, "put what a function takes beside its call")
        settings["corpus"] = self._corpus(settings["corpus"])
        settings["questions"] = self._questions(settings["questions"])
        for argument in ("splitters", "retrievers"):
            if not isinstance(named := settings[argument], dict):
                raise self._wrong(argument, f"must be a table of functions, as {_EXAMPLE}", named)
            settings[argument] = {
                name: self._function(f"{argument}.{name}", one, 1) for name, one in named.items()
            }
        if isinstance(settings.get("folder"), str):
            settings["folder"] = Path(self.file).parent / settings["folder"]
        if settings.get("budget") is False:  # TOML has no word for nothing
            settings["budget"] = None
        return settings

    def _corpus(self, named: object) -> list[Any]:
        """Read texts, each file one document, and JSONL, each line one."""
        if isinstance(named, dict):
            found = self._function("corpus", named)()
            if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
                raise self._wrong("corpus", "must call what returns a list of texts", found)
            # Not list(…), which Ctrl-C does not end where there is no end.
            return [one for one in found]  # noqa: C416
        paths = [named] if isinstance(named, str) else named
        if not isinstance(paths, list) or not all(isinstance(one, str) for one in paths):
            allowed = 'must be the path of a file, a list of paths, or {call = "module:function"}'
            raise self._wrong("corpus", allowed, named)
        documents: list[Any] = []
        for path in paths:
            there = os.path.join(os.path.dirname(self.file), path)
            if path.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
                documents += reading.chunks_of(there)
            else:
                documents.append(_text(there))
        return documents

    def _questions(self, named: object) -> Any:
        from krag_eval import load_dataset

        if isinstance(named, dict) and "call" in named:
            return self._function("questions", named)()
        settings = {"file": named} if isinstance(named, str) else named
        if not isinstance(settings, dict) or not isinstance(settings.get("file"), str):
            allowed = 'must be the path of a file, {file = "…", actual = "…"} or {call = "…"}'
            raise self._wrong("questions", allowed, named)
        how = {name: value for name, value in settings.items() if name != "file"}
        check_options(load_dataset, how)
        return load_dataset(os.path.join(os.path.dirname(self.file), settings["file"]), **how)

    def _function(self, argument: str, named: object, n_given: int = 0) -> Callable[..., Any]:
        """Import a function, and bind the arguments that stand beside it.

        It will be called with so many others.
        """
        settings = {"call": named} if isinstance(named, str) else named
        call = settings.get("call") if isinstance(settings, dict) else None
        module, colon, name = call.partition(":") if isinstance(call, str) else ("", "", "")
        if not isinstance(settings, dict) or not (module and colon and name):
            raise self._wrong(argument, f"must name a function, as {_EXAMPLE}", named)
        is_allowed = any(_is_of(one, module) for one in self.allowed)
        if not is_allowed and module not in _PUBLIC:
            self._check_module(argument, module)
        try:
            found = self._imported(argument, module, name, is_allowed=is_allowed)
        except (ModuleNotFoundError, AttributeError) as error:
            if isinstance(error, ModuleNotFoundError) and not _is_of(error.name, module):
                raise  # what the module itself imports
            problem = f"{argument} names {clipped(call)}, and there is no such function ({error})"
            fix = "the module must be beside the file, or installed"
            raise self._refused(problem, fix) from error
        arguments = {key: value for key, value in settings.items() if key != "call"}
        try:
            inspect.signature(found).bind(*[None] * n_given, **arguments)
        except ValueError:  # some that are written in C have none
            pass
        except TypeError as error:  # before anything is cut or asked
            problem = f"{argument} names {clipped(call)}, which cannot be called so: {error}"
            raise self._refused(problem) from error
        return partial(found, **arguments) if arguments else found

    def _check_module(self, argument: str, module: str) -> None:
        """Refuse a module that is no file beside, before its code is run."""
        folder = Path(os.path.abspath(self.file)).parent
        beside = folder / f"{module}.py"
        if not module.isidentifier() or not beside.is_file():
            problem = f"{argument} names the module {clipped(module)}, and there is no {module}.py "
            told = "if you trust the file, {} lets it name functions there"
            fix = Advice(told, allow_module=module)
            raise self._refused(f"{problem}beside it", fix)
        if os.path.realpath(folder) != os.path.dirname(os.path.realpath(beside)):
            problem = f"{argument} names {beside.name}, which is a link to another folder"
            raise self._refused(problem, "put the file itself there")
        found = None if module in sys.stdlib_module_names else _origin(module)
        if found is None or not os.path.samefile(found, beside):
            problem = f"{argument} names {beside.name}, and Python knows another {clipped(module)}"
            raise self._refused(problem, "rename the file")

    def _imported(self, argument: str, module: str, name: str, *, is_allowed: bool) -> Any:
        """Return what a module has by a name, if it is its own."""
        found: Any = import_module(module)
        called = f"{argument} names {clipped(f'{module}:{name}')}"
        for part in name.split("."):
            found = getattr(found, part)
            if is_allowed or module in _PUBLIC:
                own = _is_own(found, module)
            else:
                own = part == name and _is_defined(found, module)
            if part.startswith("_") or not own:
                where = getattr(found, "__module__", None) or type(found).__module__
                problem = f"{called}, and {part} is not its own ({clipped(where)})"
                raise self._refused(problem, "name a function that the file itself defines")
        if module in _PUBLIC and not is_allowed:
            public = getattr(sys.modules[module], "__all__", ())
            if name not in public or name in _WRITING or not isinstance(found, FunctionType):
                fix = Advice("if you trust the file, {} lets it", allow_module=module)
                raise self._refused(f"{called}, which is none of its public functions", fix)
        return found

    def _wrong(self, argument: str, allowed: str, came: object) -> DatasetError:
        return self._refused(f"{argument} {allowed}, got {clipped(came)}")

    def _refused(self, problem: str, fix: str | Advice = "") -> DatasetError:
        return Place(self.file).error(problem, fix)


def _text(path: str) -> dict[str, Any]:
    """Return a text file as a document that knows its name."""
    try:
        # Line ends stay as they are, for places in the text.
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Place(path).error(f"is not UTF-8: {error.reason} at byte {error.start}") from error
    return {"page_content": text, "metadata": {"source": os.path.basename(path)}}


def _origin(module: str) -> str | None:
    """Return the file that a module would be imported from, or was."""
    invalidate_caches()
    try:
        spec = find_spec(module)
    except ValueError:  # of __main__
        return None
    return None if spec is None or not spec.has_location else spec.origin


def _is_own(found: Any, module: str) -> bool:
    """Tell whether something belongs to a module, or to what was made there.

    A module that it imported does not, nor do functions and classes of others.

    >>> import shutil
    >>> [_is_own(one, "shutil") for one in (shutil.copy, shutil.os, shutil.os.system)]
    [True, False, False]
    """
    if isinstance(found, ModuleType):
        return False
    if isinstance(found, BuiltinFunctionType):
        return not isinstance(found.__self__, ModuleType)
    if isinstance(found, FunctionType | type):
        package = module.partition(".")[0]
        return f"{found.__module__}.".startswith(f"{package}.")
    return True


def _is_defined(found: Any, module: str) -> bool:
    """Tell whether the file of a module defines a function or class, or that of an object.

    >>> import shutil
    >>> [_is_defined(one, "shutil") for one in (partial(shutil.copy, "a"), shutil.os.system)]
    [True, False]
    >>> [_is_defined(one, "shutil") for one in (shutil.Error(), Path("a").rename, {}.update)]
    [True, False, False]
    """
    if isinstance(found, partial):
        return _is_defined(found.func, module)
    found = inspect.unwrap(found)
    found = found.__func__ if isinstance(found, MethodType) else found
    if not isinstance(found, FunctionType | type):
        found = type(found)
    file = sys.modules[module].__file__ or ""
    written = found.__code__.co_filename if isinstance(found, FunctionType) else file
    return found.__module__ == module and os.path.realpath(written) == os.path.realpath(file)


def _is_of(missing: str | None, module: str) -> bool:
    """Tell whether the module that is missing is the one named, or a package it is in.

    >>> _is_of("rag.cut", "rag.cut"), _is_of("rag", "rag.cut"), _is_of("torch", "rag.cut")
    (True, True, False)
    """
    return f"{module}.".startswith(f"{missing}.")


@contextmanager
def _importing_beside(file: str) -> Iterator[None]:
    """Find modules beside the file meanwhile, after all others: none is taken for another."""
    folder, known = os.path.dirname(os.path.abspath(file)), {*sys.modules}
    sys.path.append(folder)
    try:
        yield
    finally:
        if folder in sys.path:  # what is imported may have added others behind it
            del sys.path[-1 - sys.path[::-1].index(folder)]
        for name in sys.modules.keys() - known:  # another file may have one of that name
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") == folder:
                del sys.modules[name]
