"""How a verdict is told: to people as lines, to GitHub, GitLab and readers of JUnit's XML."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import click

from krag_eval.cli import output
from krag_eval.cli.shell import Verdict, printable
from krag_eval.core import InvalidInput, _

if TYPE_CHECKING:
    from krag_eval.comparison.gates import GateReport
    from krag_eval.result import EvaluationResult

#: More values of ``--format`` of a command that gives a verdict.
FORMATS = ("github", "gitlab", "junit")


def pronounce(report: GateReport, *, redact: bool = False) -> Verdict:
    """Print what passed, and to standard error first what did not; return the verdict.

    Which queries of the two results were left out, and what ground truth they rest on, is printed
    after them.
    """
    from krag_eval.comparison.gates_page import line_of, note_of

    for gate in report.by_outcome:
        click.echo(printable(line_of(gate)), err=gate.outcome != "passed")
    if note := note_of(report, redact=redact):
        click.echo(printable(note))
    if report.ground_truth:
        click.echo(_("Digest of the ground truth: {}.").format(report.ground_truth))
    return Verdict.GOOD_ENOUGH if report.passed else Verdict.NOT_GOOD_ENOUGH


def as_markdown(report: GateReport, result: EvaluationResult, *, redact: bool) -> str:
    """Return a verdict on a result with all that it rests on, as a comment shows it."""
    from krag_eval.comparison.gates_page import full_page
    from krag_eval.core.display.table import for_markdown

    page = full_page(report, result, redact=redact)
    said, shown = replace(page, tables=(), notes=()), replace(page, sentences=())
    parts = [f"### {page.title}\n", said.markdown(), shown.markdown()]
    return "\n".join([*parts, f"<sub>{for_markdown(page.signature)}</sub>\n"])


def formats(
    report: GateReport | None, file: str, asking: str, *, redact: bool = False
) -> Mapping[str, Callable[[], str]]:
    """Return the texts of the formats of verdicts.

    Args:
        report: What became of the conditions; ``None`` if there were none.
        file: What was held to them.
        asking: The option that names conditions, such as ``"--fail-on"``.
        redact: Whether questions are named by their positions.
    """

    def refuse() -> str:
        raise InvalidInput("format", "is that of a verdict", f"name conditions by {asking}")

    if report is None:
        return dict.fromkeys(FORMATS, refuse)
    return {
        "github": partial(_annotations, report, redact=redact),
        "gitlab": lambda: output.json_of(_findings(report, file)),
        "junit": partial(_junit, report, file),
    }


def _annotations(report: GateReport, *, redact: bool) -> str:
    """Return the conditions as commands of GitHub Actions: errors, warnings and plain lines."""
    from krag_eval.comparison.gates_page import line_of, note_of

    lines = []
    for one in report.by_outcome:
        told = printable(line_of(one))
        kind = "warning" if one.passed else "error"
        escaped = told.replace("%", "%25")
        annotated = f"::{kind} title=krag-eval gate::{escaped}"
        lines.append(told if one.outcome == "passed" else annotated)
    note = note_of(report, redact=redact)
    lines += [printable(note)] if note else []
    return "".join(f"{line}\n" for line in lines)


def _findings(report: GateReport, file: str) -> list[dict[str, Any]]:
    """Return what did not pass as a Code Quality report of GitLab."""
    from krag_eval.comparison.gates_page import line_of

    path = os.path.normpath(file).replace(os.sep, "/")  # as the repository spells it
    return [
        {
            "description": printable(line_of(one)),
            "check_name": f"krag-eval gate: {one.outcome}",
            "fingerprint": hashlib.sha256(
                repr((one.metric, one.slice, place)).encode()
            ).hexdigest(),
            "severity": "minor" if one.passed else "critical",
            "location": {"path": path, "lines": {"begin": 1}},
        }
        for place, one in enumerate(report.gates)
        if one.outcome != "passed"
    ]


def _junit(report: GateReport, file: str) -> str:
    """Return the conditions as the test cases of a suite; what is inconclusive was skipped."""
    told = {"name": f"krag-eval: {printable(file)}", "tests": str(len(report.gates))}
    told |= {"failures": str(sum(not one.passed for one in report.gates)), "errors": "0"}
    suites = ElementTree.Element("testsuites", told)
    skipped = sum(one.passed and one.is_inconclusive for one in report.gates)
    suite = ElementTree.SubElement(suites, "testsuite", {**told, "skipped": str(skipped)})
    seen: Counter[str] = Counter()
    for one in report.gates:
        name = printable(" ".join(filter(None, (one.metric, one.slice))))
        seen[name] += 1  # a floor and a drop of one metric are two
        name += f" ({seen[name]})" if seen[name] > 1 else ""
        case = ElementTree.SubElement(suite, "testcase", classname="krag-eval.gate", name=name)
        reason, kind = printable(one.reason), "skipped" if one.passed else "failure"
        if one.outcome == "passed":
            ElementTree.SubElement(case, "system-out").text = reason
        else:
            ElementTree.SubElement(case, kind, type=one.outcome, message=reason).text = reason
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, "unicode")}\n'
