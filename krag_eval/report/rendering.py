"""From what is to be said to a page: templates, escaping, numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from krag_eval import __version__
from krag_eval._text import visible
from krag_eval.plotting import Language
from krag_eval.report.wording import words

__all__ = ["checked_number", "number", "p_value", "percent", "rendered"]


def rendered(
    template: str, page: Mapping[str, Any], language: Language, title: object, date: object
) -> str:
    """Fill a template; whatever is not made by a template or a plot is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("krag_eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    said = words(language)
    known = {"w": said, "language": language, "version": __version__, "date": date}
    known |= {"title": said[f"{template} title"] if title is None else title}
    known |= {"svg": _picture, "how_to_read": template.replace(".html", f".{language}.html")}
    return environment.get_template(template).render({**known, **page})


def _harmless(value: Any) -> Any:
    """Spell out what would act instead of showing; markup of ours stays as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


def _picture(svg: str) -> Any:
    """Let a picture stand as it is: plotting has escaped what is in it."""
    from markupsafe import Markup

    return Markup(svg)


def number(value: float) -> str:
    """Return three digits, or what it takes for a small number not to read as 0.

    >>> number(0.5), number(0.00002), number(float("nan"))
    ('0.500', '2e-05', '–')
    """
    if math.isnan(value):
        return "–"
    if value and abs(value) < 0.0005:
        return f"{value:.0e}"
    return f"{value:.3f}".replace("-", "−")


def p_value(p: float) -> str:
    """Return a p-value, never 0.

    >>> p_value(0.00001), p_value(0.0312)
    ('< 0.001', '0.031')
    """
    if math.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def percent(level: float, w: Mapping[str, str]) -> str:
    """Return a level as it is spoken of.

    >>> percent(0.95, words("en")), percent(0.95, words("ko"))
    ('95 %', '95%')
    """
    return w["percent"].format(f"{100 * level:.10g}")


def checked_number(name: str, value: object) -> int:
    """Return how many of something are asked for.

    Raises:
        ValueError: If it is no whole number of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}.")
    return value


def joined(parts: Iterable[str]) -> str:
    """Return the parts that say something, with a dot between."""
    return " · ".join(part for part in parts if part)
