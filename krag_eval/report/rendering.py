"""What the pages share: templates, escaping, names and numbers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from krag_eval import __version__
from krag_eval.core import (
    Budget,
    Cutoff,
    InvalidInput,
    InvalidType,
    _,
    clipped,
    fitted,
    muted,
    percent,
    rounded,
    short,
    span,
    spelled,
    visible,
)
from krag_eval.core.errors import text as checked_text
from krag_eval.core.language import language
from krag_eval.core.scoring.cutoffs import Unit, in_order
from krag_eval.plotting import styling
from krag_eval.plotting.forest import MOST_ROWS, slice_forest

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes

    from krag_eval.comparison.slices import SlicedComparison, Slices

Sliced = TypeVar("Sliced", bound="Slices | SlicedComparison")
#: Columns of a name, and of a note.
NAME, NOTE = 40, 1000


@cache
def environment() -> Environment:
    """Return the templates; whatever is not made by a template or a plot is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader("krag_eval.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )
    made.filters |= {
        "name": partial(fitted, width=NAME),
        "note": partial(fitted, width=NOTE),
        "short": short,
        "rounded": rounded,
        "percent": percent,
        "span": lambda ends: span(*ends),
        "span_said": lambda ends: span(ends[0], ends[1], short),
        "share": styling.share_label,
        "within": words_of,
    }
    # Plotting has escaped its pictures.
    made.globals |= {"_": _, "version": __version__, "svg": Markup, "dark": styling.DARK}
    return made


def rendered(page: Mapping[str, Any]) -> str:
    """Fill the template that a page names."""
    from markupsafe import Markup

    made, name = environment(), page.get("script", "page.js")
    source = made.loader.get_source(made, name)[0]  # type: ignore[union-attr]
    # As a browser reads it: with newlines of one kind, whatever the checkout has.
    script = "\n" + "\n".join(source.splitlines()) + "\n"
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    # The browser lets a script of this hash run, and no other.
    known = {"script": Markup(script), "script_hash": f"sha256-{digest}", "language": language()}
    return made.get_template(page["template"]).render({**page, **known})


def picture(
    name: str, size: tuple[float, float], draw: Callable[..., Axes], *of: Any, **how: Any
) -> str:
    """Draw for a page."""
    return styling.inline_svg(lambda ax: draw(*of, ax=ax, **how), name, size=size)


def slice_picture(sliced: Slices | SlicedComparison, place: int, width: float) -> str:
    """Draw the first metric of slices, a row each."""
    n_rows = sum(row.metric == sliced.metrics[0] for row in sliced.rows)
    size = width, 1.5 + 0.34 * min(n_rows, MOST_ROWS)
    return picture(f"slices{place}", size, slice_forest, sliced)


def _harmless(value: Any) -> Any:
    """Spell out what would act instead of showing; markup of ours stays as it is."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return visible(value)
    return value


def checked_tags(by: object) -> list[str]:
    """Return the tags to slice by.

    Raises:
        InvalidType: If it is neither a tag nor several.
    """
    if not isinstance(by, Iterable):
        raise InvalidType("by", f"must name tags, such as ('corpus',), got {clipped(by)}")
    tags = dict.fromkeys([by] if isinstance(by, str) else by)
    return [checked_text("by", tag, "names of tags") for tag in tags]


def sliced_by(of: Callable[..., Sliced], tag: str, *at: Any, **how: Any) -> Sliced:
    """Return slices by a tag; the page says itself that they are too many.

    Raises:
        InvalidInput: If there is no such tag, or slices need what the result does not hold.
    """
    try:
        with muted():
            return styling.labelled(of(tag, *at, **how))
    except InvalidInput as error:
        argument = "by" if error.argument == "tag" else error.argument
        raise type(error)(argument, error.problem, error.fix) from None


def named(sliced: Sliced, name_of: Callable[[str], str]) -> Sliced:
    """Return slices with other names for their metrics, for sentences that have no keys."""
    rows: Any = tuple(replace(row, metric=name_of(row.metric)) for row in sliced.rows)
    lower = tuple(map(name_of, sliced.lower_is_better))
    return replace(sliced, rows=rows, lower_is_better=lower)


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
