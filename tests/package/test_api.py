"""What users may rely on, listed in ``api.txt``: changing it is a decision.

After a change that is meant, run ``python tests/package/test_api.py --update`` and read what
differs: what was added belongs into the changelog, what is gone or asks for more breaks somebody's
code.
"""

import ast
import difflib
import enum
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path

if __name__ == "__main__":  # before the import below, so that this tree is described
    sys.path.insert(0, str(Path(__file__).parents[2]))

import krag_eval

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "tests" / "api.txt"
#: The public modules: what they name in ``__all__`` is for users.
PUBLIC = (
    "krag_eval",
    "krag_eval.compat",
    "krag_eval.datasets",
    "krag_eval.distributed",
    "krag_eval.integrations.langsmith",
    "krag_eval.integrations.openevals",
    "krag_eval.integrations.opentelemetry",
    "krag_eval.integrations.pydantic_evals",
    "krag_eval.integrations.pytest",
    "krag_eval.plotting",
)


def described():
    """Return every public name with its parameters, one line each."""
    lines = [line for module in PUBLIC if exists(module) for line in lines_of(module)]
    return "".join(f"{line}\n" for line in [*lines, *lines_of_held()])


def lines_of_held():
    """Yield the classes of what results hold, which the reference lists."""
    source = (ROOT / "docs" / "_ext" / "api_pages.py").read_text("utf-8")
    for place in ast.literal_eval(source.partition("\nHELD = ")[2].partition("\n)\n")[0] + ")"):
        module, _, name = f"krag_eval.{place}".rpartition(".")
        yield from lines_about(f"{module}.{name}", getattr(importlib.import_module(module), name))


def exists(module):
    """Tell whether there is such a module; the list above may name those to come."""
    return importlib.util.find_spec(module) is not None


def lines_of(module):
    """Yield the public names of a module."""
    found = importlib.import_module(module)
    for name in sorted(found.__all__):
        if module != "krag_eval" or not inspect.ismodule(getattr(found, name)):
            yield from lines_about(f"{module}.{name}", getattr(found, name))


def lines_about(name, value):
    """Yield a name, and what a class offers under it."""
    if isinstance(value, enum.EnumMeta):
        yield f"{name}: {', '.join(member.name for member in value)}"
    elif isinstance(value, type):
        yield f"{name}{parameters(value)}"
        for member in sorted(members_of(value)):
            yield f"    {member}{parameters(inspect.getattr_static(value, member))}"
    else:
        yield f"{name}{parameters(value)}"


def members_of(value):
    """Return what the class and its ancestors among ours define for users."""
    ours = [one for one in value.__mro__ if one.__module__.partition(".")[0] == "krag_eval"]
    return {name for one in ours for name in vars(one) if not name.startswith("_")}


def parameters(value):
    """Return names, kinds and defaults of parameters; types are for type checkers to compare."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not callable(function):
        return ""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return "(…)"
    plain = [
        one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def test_the_public_names_are_those_written_down():
    """Names, parameters and defaults of everything public."""
    listed, found = LISTED.read_text("utf-8"), described()
    difference = difflib.unified_diff(
        listed.splitlines(), found.splitlines(), "written down", "found", lineterm="", n=0
    )
    assert listed == found, "\n".join([*difference, "", __doc__ or ""])


def test_every_public_module_is_listed():
    """A package that users import from by name says so above, or in the module it is part of."""
    packages = {
        path.parent.name
        for path in Path(krag_eval.__file__).parent.glob("*/__init__.py")
        if "__all__" in path.read_text("utf-8")
    }
    inner = {
        "core",  # for rooms: test_rooms.py
        "cli",
        "report",
        "matching",
        "presenting",
        "retrievers",
        "streaming",
    }  # reached through other names
    assert {f"krag_eval.{name}" for name in packages - inner} <= set(PUBLIC)


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python tests/package/test_api.py --update")
    LISTED.write_text(described(), "utf-8")
    print(f"wrote {LISTED}")
