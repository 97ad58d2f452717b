"""The language people are told things in: English stands in the code, others in catalogs.

A catalog is ``locale/<language>/LC_MESSAGES/krag_eval.mo``; what it lacks is told in English.
Errors are always in English. ``tests/catalog.py`` keeps the catalogs up to date.
"""

from __future__ import annotations

import functools
import gettext as catalogs
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from krag_eval.core.errors import meanwhile, one_of

#: A language that has a catalog, or ``"en"``.
Language: TypeAlias = str

LOCALE = Path(__file__).with_name("locale")
_DOMAIN = "krag_eval"
_VARIABLE = "KRAG_EVAL_LANG"
#: Languages whose catalogs this package brings, and English.
LANGUAGES: tuple[Language, ...] = ("en", "ko")
#: What was asked for at the door through which this code was entered; ``None`` if nothing was.
SPOKEN: ContextVar[Language | None] = ContextVar("krag_eval_language", default=None)

Function = TypeVar("Function", bound=Callable[..., Any])


def languages() -> tuple[Language, ...]:
    """Return English, and every language with a catalog."""
    return _languages(LOCALE)


@functools.cache  # looking into folders would take a hundred times as long as a text
def _languages(folder: Path) -> tuple[Language, ...]:
    return "en", *sorted(file.parts[-3] for file in folder.glob(f"*/LC_MESSAGES/{_DOMAIN}.mo"))


def language() -> Language:
    """Return the language to write in: as asked at the door, as KRAG_EVAL_LANG says, or "en".

    Raises:
        InvalidInput: If the variable names none; it is the argument.
    """
    asked = SPOKEN.get()
    if asked is not None:
        return asked
    named = os.environ.get(_VARIABLE) or "en"
    return named if named == "en" else one_of(_VARIABLE, named, languages())


def language_of(asked: Language | None = None) -> Language:
    """Return the language asked for, or else that of the moment."""
    with speaking(asked):
        return language()


def speaking(asked: Language | None) -> AbstractContextManager[object]:
    """Tell people things in a language meanwhile; ``None`` leaves it as it is.

    Raises:
        InvalidType: If it is not text.
        InvalidInput: If there is no such language.

    >>> with speaking("ko"):
    ...     print(_("matcher"))
    매처
    """
    if asked is not None:
        one_of("language", asked, languages())
    return meanwhile(SPOKEN, SPOKEN.get() if asked is None else asked)


def spoken(function: Function) -> Function:
    """Make a public function speak the language that its argument ``language`` names."""
    code = function.__code__
    place = code.co_varnames.index("language")

    @functools.wraps(function)
    def said(*args: Any, **options: Any) -> Any:
        asked = args[place] if place < min(len(args), code.co_argcount) else None
        with speaking(options.get("language", asked)):
            return function(*args, **options)

    return cast(Function, said)


@functools.cache
def _catalog(language: Language, folder: Path) -> catalogs.NullTranslations:
    return catalogs.translation(_DOMAIN, folder, [language], fallback=True)


def _(text: str) -> str:
    """Return a text in the language of the moment; in English if it has no translation."""
    return _catalog(language(), LOCALE).gettext(text)


def ngettext(one: str, many: str, number: int) -> str:
    """Return the form of a text that goes with a number, in the language of the moment."""
    return _catalog(language(), LOCALE).ngettext(one, many, number)


def pgettext(context: str, text: str) -> str:
    """Return a text whose English means several things, one of which the context names."""
    return _catalog(language(), LOCALE).pgettext(context, text)


def N_(text: str) -> str:  # noqa: N802  (the name that tools for catalogs know)
    """Mark a text for the catalogs where it is declared; :func:`_` translates it where told."""
    return text
