"""The reference of the API, written from ``__all__``: a new public name appears by itself.

Names of ``krag_eval`` itself get a page each, listed by the room they live in; every other public
module is one page. Annotations name the rooms classes live in, and are led to the public names.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

import krag_eval

__all__ = ["homes", "pages", "public_modules", "setup"]

#: The public submodules; those that are packages of adapters show their modules, too.
SUBMODULES = ("datasets", "errors", "plotting", "report", "compat", "integrations", "distributed")
#: Room of a name of ``krag_eval`` -> heading. What is in no room here stands under "More".
ROOMS = {
    "evaluator": "Evaluating",
    "streaming": "Evaluating",
    "asking": "Retrievers",
    "sweeping": "Retrievers",
    "result": "Results",
    "core.results": "Results",
    "history.history": "Results",
    "diagnosis": "Results",
    "lab.support": "Results",
    "comparison.gates": "Results",
    "comparison": "Comparing",
    "intervals": "Comparing",
    "lab.few_labels": "Comparing",
    "core.documents": "Ground truth",
    "loading": "Ground truth",
    "auditing": "Ground truth",
    "labelling": "Ground truth",
    "reanchoring": "Ground truth",
    "core.conventions": "Conventions and metrics",
    "core.scoring": "Conventions and metrics",
    "core.matching": "Matchers",
    "matchers": "Matchers",
    "lab.calibration": "Matchers",
}
#: Classes of what results hold, read but never made by a user, by where they are defined.
HELD = (
    "core.results.evidence.PredictedDocument",
    "core.results.evidence.GroundTruthItem",
    "core.results.latency.RetrievalRun",
    "core.results.latency.Latency",
    "core.results.latency.Failure",
    "lab.calibration.AgreementCounts",
    "core.scoring.averages.Average",
    "comparison.gates.Gate",
    "matchers.judge.JudgeCost",
    "auditing.audit.Finding",
    "reanchoring.reanchor.Anchored",
    "lab.calibration.Agreement",
    "history.history.HistoryRun",
    "sweeping.sweep.Sweep",
    "sweeping.sweep.SweepCell",
    "sweeping.sweep.SweepChoice",
    "lab.few_labels.Debiased",
    "lab.few_labels.DebiasedValue",
    "comparison.judged.Judgements",
    "labelling.labels.LabellerAgreement",
    "labelling.labels.ToLabel",
    "comparison.judged.ToJudge",
    "comparison.judged.UnjudgedDocument",
    "comparison.planning.QuestionPlan",
    "lab.predicting.Predictions",
    "lab.score_cutoffs.ScoreCutoffs",
    "comparison.slices.Slice",
)


def _listed() -> dict[str, str]:
    """Return the home of every name that the package's stub lists."""
    stub = ast.parse(Path(krag_eval.__file__).with_suffix(".pyi").read_text("utf-8"))
    homes = ((node.module, node.names) for node in stub.body if isinstance(node, ast.ImportFrom))
    return {one.name: module for module, names in homes if module for one in names}


#: Public name -> the module it lives in.
HOMES = _listed()
DIRECTIVES = {"class": "autoclass", "exception": "autoexception", "function": "autofunction"}


def public_modules() -> dict[str, ModuleType]:
    """Return every public module by name, those with nothing but modules left out.

    >>> "krag_eval.compat.evaluators" in public_modules()
    True
    """
    found = {"krag_eval": krag_eval}
    here = {info.name for info in pkgutil.iter_modules(krag_eval.__path__)}
    for name in SUBMODULES:
        if name in here:
            found.update(_with_modules(f"krag_eval.{name}"))
    return found


def _with_modules(name: str) -> Iterator[tuple[str, ModuleType]]:
    module = import_module(name)
    inner = [public for public in names_of(module) if inspect.ismodule(getattr(module, public))]
    if len(inner) < len(names_of(module)):
        yield name, module
    for public in inner or _modules_in(module) * (not names_of(module)):
        yield from _with_modules(f"{name}.{public}")


def _modules_in(module: ModuleType) -> list[str]:
    path = getattr(module, "__path__", [])
    return [info.name for info in pkgutil.iter_modules(path) if not info.name.startswith("_")]


def names_of(module: ModuleType) -> list[str]:
    """Return the public names of a module but its version."""
    names = [name for name in getattr(module, "__all__", []) if not name.startswith("__")]
    return names if module is not krag_eval else [name for name in names if name in HOMES]


def kind(value: object) -> str:
    """Return what to call a value in the reference.

    >>> kind(krag_eval.compare), kind(krag_eval.Metric), kind(krag_eval.GateFailedError)
    ('function', 'class', 'exception')
    """
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if inspect.isroutine(value) else "data"


def first_sentence(value: object) -> str:
    """Return the first line of what a class or function says of itself."""
    if kind(value) == "data":
        return ""
    return (inspect.getdoc(value) or "").partition("\n")[0]


def pages() -> dict[str, str]:
    """Return the text of every page by its name in ``docs/api``."""
    written = {}
    for name, module in public_modules().items():
        if module is not krag_eval:
            written[f"{name}.md"] = _module_page(name, module)
    for name in names_of(krag_eval):
        written[f"krag_eval.{name}.md"] = _page(name, "krag_eval", [name])
    for place in HELD:
        module, _, name = f"krag_eval.{place}".rpartition(".")
        written[f"{module}.{name}.md"] = _page(name, module, [name])
    return {"index.md": _index(list(written)), **written}


def _index(others: list[str]) -> str:
    parts = ["# API reference\n", _index_text()]
    for heading, names in _by_room().items():
        parts += [f"## {heading}\n", _list("krag_eval", krag_eval, names)]
    parts += ["## What results hold\n", _HELD_TEXT, _held()]
    parts.append("## Other modules\n")
    for name, module in public_modules().items():
        if module is not krag_eval:
            parts.append(f"- [`{name}`]({name}.md)" + _told(_summary(module)))
    parts.append(_toctree(sorted(others, key=str.lower)))
    return "\n".join(parts)


def _index_text() -> str:
    return (
        "Every public name imports from `krag_eval` itself; it loads on first use. Files, plots,\n"
        "reports and krag's names have modules of their own. Whatever is not listed here is\n"
        "internal and may change.\n"
    )


_HELD_TEXT = "You read these from results; krag_eval makes them.\n"


def _held() -> str:
    """Return the entries of the classes that are read from results."""
    lines = []
    for place in HELD:
        module, _, name = f"krag_eval.{place}".rpartition(".")
        told = _told(first_sentence(getattr(import_module(module), name)))
        lines.append(f"- [`{name}`]({module}.{name}.md){told}")
    return "\n".join([*lines, ""])


def _by_room() -> dict[str, list[str]]:
    rooms: dict[str, list[str]] = {heading: [] for heading in ROOMS.values()}
    for name in names_of(krag_eval):
        home = HOMES[name]
        paths = [home.rsplit(".", n)[0] for n in range(home.count(".") + 1)]
        heading = next((ROOMS[path] for path in paths if path in ROOMS), "More")
        rooms.setdefault(heading, []).append(name)
    return {heading: names for heading, names in rooms.items() if names}


def _summary(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")


def _list(prefix: str, module: ModuleType, names: list[str]) -> str:
    lines = [
        f"- [`{name}`]({prefix}.{name}.md)" + _told(_sentence(prefix, module, name))
        for name in names
    ]
    return "\n".join([*lines, ""])


def _sentence(prefix: str, module: ModuleType, name: str) -> str:
    """Return the first line of what a name says of itself, or of the comment of a constant."""
    value = getattr(module, name)
    said = said_of(f"{prefix}.{name}") if kind(value) == "data" else []
    return said[0] if said else first_sentence(value)


def _told(sentence: str) -> str:
    """Return what follows a name; the roles of docstrings are code in Markdown.

    >>> _told("Made by :func:`compare`.")
    ': Made by `compare`.'
    """
    return re.sub(r":\w+:(?=`)", "", f": {sentence}").replace("``", "`") if sentence else ""


def _toctree(entries: list[str]) -> str:
    return "\n".join(["\n```{toctree}", ":hidden:", "", *entries, "```", ""])


def _module_page(name: str, module: ModuleType) -> str:
    inner = [public for public in names_of(module) if not inspect.ismodule(getattr(module, public))]
    led = homes()
    elsewhere = {public: led.get(_defined(module, public)) for public in inner}
    own = [public for public in inner if elsewhere[public] in (None, f"{name}.{public}")]
    introduction = f"```{{eval-rst}}\n.. automodule:: {name}\n   :no-members:\n```\n"
    for public in inner:
        if public not in own:
            introduction += f"\n`{public}` is {{py:obj}}`{elsewhere[public]}`.\n"
    return _page(name, name, own, introduction)


def _page(title: str, module: str, names: list[str], introduction: str = "") -> str:
    blocks = [f"# {title}\n", introduction]
    for name in names:
        value = getattr(import_module(module), name)
        directive = DIRECTIVES.get(kind(value))
        block = (
            "\n".join([f".. {directive}:: {module}.{name}", *_shown_of(value)])
            if directive
            else _data(f"{module}.{name}", value)
        )
        blocks.append(f"```{{eval-rst}}\n{block}\n```\n")
    return "\n".join(blocks)


def _shown_of(value: object) -> list[str]:
    """Return the options of a class: its public bases, and what comes from bases without a page.

    >>> _shown_of(krag_eval.Slices), _shown_of(krag_eval.RougeMatcher), _shown_of(krag_eval.AnyOf)
    (['   :inherited-members:'], ['   :show-inheritance:'], [])
    """
    if not inspect.isclass(value):
        return []
    led = homes()
    bases = [one for one in value.__mro__[1:] if one.__module__.startswith("krag_eval")]
    public = [one.__name__ for one in bases if f"{one.__module__}.{one.__qualname__}" in led]
    hidden = len(bases) > len(public) and not issubclass(value, BaseException)
    inherited = [f"   :inherited-members: {', '.join(public)}".rstrip()] if hidden else []
    named = bool(public) and value.__bases__[0].__name__ in public
    return ["   :show-inheritance:"] * named + inherited


def _data(name: str, value: object) -> str:
    """Return the entry of a constant: the comment it stands under, and what it holds."""
    held = ", ".join(f"``{key!r}``" for key in value) if isinstance(value, Collection) else ""
    told = [*said_of(name), "", *([f"It holds {held}."] if held else [])]
    return "\n".join([f".. py:data:: {name}", "", *(f"   {line}".rstrip() for line in told)])


def said_of(name: str) -> list[str]:
    """Return the ``#:`` comment of a constant, wherever in its package it is defined.

    >>> said_of("krag_eval.METRICS")[0]
    'Every built-in metric, by its column; of a metric with parameters, by what precedes them.'
    """
    package, _, constant = name.rpartition(".")
    if package == "krag_eval" and constant in HOMES:
        places = [f"krag_eval.{HOMES[constant]}"]
    else:
        module = import_module(package)
        inner = (f"{package}.{name}" for name in _modules_in(module))
        places = [package, *inner, "krag_eval.core.language"]
    for place in places:
        comments = ModuleAnalyzer.for_module(place).find_attr_docs()
        if ("", constant) in comments:
            return comments["", constant]
    return []


def homes() -> dict[str, str]:
    """Return the public name of everything public, by the module it was defined in and its name.

    >>> homes()["krag_eval.result.EvaluationResult"]
    'krag_eval.EvaluationResult'
    """
    found = {}
    for module_name, module in reversed(public_modules().items()):
        for name in names_of(module):
            found[_defined(module, name)] = f"{module_name}.{name}"
    return found | {f"krag_eval.{place}": f"krag_eval.{place}" for place in HELD}


def _defined(module: ModuleType, name: str) -> str:
    """Return where a public name comes from; plain data comes from where it is public."""
    return f"{getattr(getattr(module, name), '__module__', module.__name__)}.{name}"


def write_pages(app: Any) -> None:
    """Let ``docs/api`` hold the pages, and no others."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    written = pages()
    for path in folder.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def lead_home(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a reference to where a public class was defined, or to its bare name.

    An annotation may name what has no page here, and stands as text; a role in a docstring that
    leads nowhere is an error.
    """
    if node.get("refdomain") != "py":
        return None
    target, public = node["reftarget"], homes()
    bare = {name.rpartition(".")[2]: name for name in public.values()}
    led = public.get(target) or bare.get(target.rpartition(".")[2])
    if led is None or led == target:
        is_role = isinstance(content, nodes.literal) or " " in target
        return None if is_role and not _is_attribute(node) else content
    domain = env.get_domain("py")
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], led, node, content
    )


def _is_attribute(node: Any) -> bool:
    """Return whether a role names an attribute of the class it stands in."""
    name, within = node["reftarget"], node.get("py:class")
    if node["reftype"] != "attr" or not within:
        return False
    owner = import_module(node.get("py:module") or "krag_eval")
    for part in within.split("."):
        owner = getattr(owner, part, None)
    return name in getattr(owner, "__annotations__", {}) or hasattr(owner, name)


#: Stands for a colon while napoleon looks for one.
_COLON = "\ue000"


def hide_colon(
    app: Any, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Keep what a property or a section of returns says before a colon from being a type."""
    first = [0] if what in ("attribute", "property", "data") else []
    first += [at + 1 for at, line in enumerate(lines) if line.strip() in ("Returns:", "Yields:")]
    for at in first:
        if at < len(lines):
            lines[at] = lines[at].replace(": ", f"{_COLON} ")


def show_colon(
    app: Any, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Put the colon back."""
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", write_pages)
    app.connect("missing-reference", lead_home)
    app.connect("autodoc-process-docstring", hide_colon, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", show_colon, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
