#!/usr/bin/env python3
"""Keep the catalogs of translations up to date: ``update`` rewrites them, ``check`` only looks.

``update`` collects the texts of the package, drops what no code says any more, leaves a blank for
what has no translation yet, and compiles. ``check`` fails where that would change a file, where a
text has no translation, or where a translation fills in other things than the English.
"""

import ast
import io
import string
import sys
from datetime import UTC, datetime
from pathlib import Path

from babel.messages import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parents[1] / "krag_eval"
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2), "pgettext": ((1, "c"), 2)}
#: What declares a command or an option, whose help is translated when it is shown.
DECLARING = {"command", "option", "metric_option", "one_cutoff_option"}
#: Those whose help is the second argument.
_SECOND = {"_choice", "cutoffs_option"}
EPOCH = datetime.fromtimestamp(0, UTC)
METHODS = [("**.py", "python"), ("**/templates/**", "jinja2")]


def template() -> Catalog:
    """Return every text of the package, with the files that say it."""
    found = Catalog(charset="utf-8")
    for file, _, text, comments, context in sorted(
        extract_from_dir(PACKAGE, METHODS, keywords=KEYWORDS, comment_tags=("Translators:",)),
        key=lambda one: (one[0], one[1]),
    ):
        found.add(text, None, [(Path(file).as_posix(), 0)], auto_comments=comments, context=context)
    for path in (PACKAGE / "core" / "options.py", *_commands()):
        for text in helps(path):
            found.add(text, None, [(path.relative_to(PACKAGE).as_posix(), 0)])
    return found


def _commands() -> list[Path]:
    """Return the modules that declare commands and options: those of the shell, and of rooms."""
    return sorted(
        [*PACKAGE.glob("cli/*.py"), *PACKAGE.glob("*/command.py"), *PACKAGE.glob("*/verdicts.py")]
    )


def helps(file: Path) -> list[str]:
    """Return the help of commands and options: docstrings, and texts where they are declared."""
    tree = ast.parse(file.read_text("utf-8"))
    told = [
        ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(
            ast.unparse(one).startswith(("command(", "options.command("))
            for one in node.decorator_list
        )
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).removeprefix("options.")
        given = node.args[:1] if name in DECLARING else []
        given = node.args[1:2] if name in _SECOND else given
        if name == "saving":
            given = [one.value for one in node.keywords if one.arg != "formats"]
        texts = [one.value for one in given if isinstance(one, ast.Constant)]
        told += [one for one in texts if isinstance(one, str)]
    return told


def updated(file: Path, texts: Catalog) -> tuple[str, bytes, list[str]]:
    """Return a catalog's text and compiled form as they should be, and what is wrong with it."""
    locale = file.parts[-3]
    with file.open("rb") as stream:
        catalog = read_po(stream, locale)
    catalog.update(texts, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    wrong = [problem for one in catalog if one.id for problem in problems(one)]
    text, compiled = io.BytesIO(), io.BytesIO()
    write_po(text, catalog, 100, omit_header=True, include_lineno=False, sort_by_file=True)
    header = f'msgid ""\nmsgstr ""\n"Language: {locale}\\n"\n'
    header += '"Content-Type: text/plain; charset=utf-8\\n"\n'
    header += f'"Plural-Forms: {catalog.plural_forms}\\n"\n\n'
    read_back = read_po(io.BytesIO(header.encode() + text.getvalue()), locale)
    read_back.creation_date = EPOCH  # else that of now, and no catalog would stay as it is
    write_mo(compiled, read_back)
    return header + text.getvalue().decode("utf-8"), compiled.getvalue(), wrong


def problems(message: Message) -> list[str]:
    """Return what is wrong with a translation: it is missing, or fills in other things."""
    told = message.string if isinstance(message.string, tuple) else (message.string,)
    english = message.id if isinstance(message.id, tuple) else (message.id,)
    if message.fuzzy:  # such as a plural that no longer is one: it is not compiled
        return [f"marked as fuzzy: {message.id!r}"]
    if not all(told):
        return [f"no translation: {message.id!r}"]
    wanted = filled_in(english[-1])
    return [
        f"fills in {filled_in(one)} for {wanted}: {one!r}"
        for one in told
        if filled_in(one) != wanted
    ]


def filled_in(text: str) -> list[str]:
    """Return the names of what is filled into a text, and an empty one for each without a name."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:  # braces that are JSON
        return []
    # One language may name a thing twice where another does once.
    return [*sorted({*filter(None, names)}), *(name for name in names if not name)]


def main(task: str) -> int:
    """Update every catalog or check it, and return the exit code."""
    texts, code = template(), 0
    for file in sorted(PACKAGE.glob("core/locale/*/LC_MESSAGES/krag_eval.po")):
        text, compiled, wrong = updated(file, texts)
        for path, content in ((file, text.encode()), (file.with_suffix(".mo"), compiled)):
            if not path.exists() or path.read_bytes() != content:
                if task == "update":
                    path.write_bytes(content)
                else:
                    wrong.append("stale: run python tests/catalog.py update")
        for problem in wrong:
            print(f"{file.relative_to(PACKAGE.parent)}: {problem}")
        code = code or bool(wrong)
    return int(code)


if __name__ == "__main__":
    if sys.argv[1:] not in (["update"], ["check"]):
        sys.exit("usage: python tests/catalog.py update|check")
    sys.exit(main(sys.argv[1]))
