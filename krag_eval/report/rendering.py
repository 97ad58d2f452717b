"""What both pages share: templates, escaping, numbers."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from krag_eval import __version__
from krag_eval._language import _, language
from krag_eval._text import visible
from krag_eval.plotting.styling import DARK
from krag_eval.scoring.cutoffs import Budget, Cutoff, Unit, in_order, spelled

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, page: Mapping[str, Any], title: object, date: object) -> str:
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
    known = {"_": _, "language": language(), "version": __version__}
    known |= {"title": title, "date": date, "svg": _picture, "dark": DARK, **_script(environment)}
    return environment.get_template(template).render({**known, **page})


def _script(environment: Environment) -> dict[str, Any]:
    """Return the script of the pages, and the hash by which a browser lets it run, and no other."""
    from markupsafe import Markup

    source = environment.loader.get_source(environment, "page.js")[0]  # type: ignore[union-attr]
    # As a browser reads it: with newlines of one kind, whatever the checkout has.
    script = "\n" + "\n".join(source.splitlines()) + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return {"script": Markup(script), "script_hash": f"sha256-{digest}"}


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


def p_words(p: float) -> str:
    """Return a p-value with its sign, as it stands in a sentence.

    >>> p_words(0.00001), p_words(0.0312)
    ('< 0.001', '= 0.031')
    """
    told = p_value(p)
    return told if told.startswith("<") else f"= {told}"


def joined(parts: Iterable[str]) -> str:
    """Return the parts that say something, with a dot between."""
    return " · ".join(part for part in parts if part)


def units_of(cutoffs: Iterable[Cutoff]) -> list[Unit]:
    """Return the units that have several budgets among the cutoffs, enough for a curve.

    >>> units_of([5, Budget(500, "w"), Budget(1000, "w"), Budget(900, "c")])
    ['w']
    """
    units = [k.unit for k in in_order(cutoffs) if isinstance(k, Budget)]
    return [unit for unit in dict.fromkeys(units) if units.count(unit) > 1]


def words_of(cutoff: Cutoff) -> str:
    """Return a cutoff as a sentence names it."""
    if isinstance(cutoff, Budget):
        return {
            "w": _("a budget of {:,} words"),
            "c": _("a budget of {:,} characters"),
            "t": _("a budget of {:,} units of length"),
        }[cutoff.unit].format(cutoff.amount)
    return _("all documents") if cutoff is None else f"k = {spelled(cutoff)}"
