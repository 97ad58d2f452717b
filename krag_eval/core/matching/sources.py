"""The source of a function, as a syntax tree: comments, docstrings and layout do not matter.

What it says is not followed: where a name is written to or looked up, that is all that is seen.
"""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
import types
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from krag_eval.core.matching.withheld import secrets_written, without_secrets

_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNSAID = ("ctx", "type_comment", "kind")
_CHANGES = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop",
    "popitem", "popleft", "put", "remove", "setdefault", "update",
})  # fmt: skip
# By these a function comes to what its source does not name.
_LOOKS_UP = frozenset({"eval", "exec", "globals", "__import__", "import_module"})


class _Source(NamedTuple):
    """A file as it was compiled: its code, and its functions by name and first line."""

    codes: frozenset[types.CodeType]
    functions: Mapping[tuple[str, int], list[Any]]


def tree_of(function: types.FunctionType) -> Any:
    """Return a function's syntax tree; ``None`` if its source is not there."""
    code = function.__code__
    source = _source_of(code, function.__globals__)
    if source is None:
        return None
    nodes = source.functions.get((code.co_name, code.co_firstlineno), [])
    if len(nodes) > 1:  # lambdas on one line, one within another
        places = [one for one in code.co_positions() if None not in one and one[2:] != (0, 0)]
        nodes = [node for node in nodes if all(_within(place, node.body) for place in places)]
        nodes = sorted(nodes, key=lambda node: node.col_offset)[-1:] if places else []
    return nodes[0] if nodes else None


def _source_of(code: types.CodeType, module: dict[str, Any]) -> _Source | None:
    """Return the source that this code is of, though its file may have changed since."""
    for look_again in (False, True):
        if look_again:
            linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename, module)
        source = _parsed("".join(lines), code.co_flags & _FUTURE)
        if source is not None and code in source.codes:
            return source
    return None


@lru_cache(maxsize=32)
def _parsed(text: str, flags: int) -> _Source | None:
    try:
        tree = ast.parse(text)
        codes = [compile(text, "<source>", "exec", flags=flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for one in codes:
        codes += [inner for inner in one.co_consts if isinstance(inner, types.CodeType)]
    functions: dict[tuple[str, int], list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            decorated = [node, *getattr(node, "decorator_list", [])]
            key = getattr(node, "name", "<lambda>"), min(one.lineno for one in decorated)
            functions.setdefault(key, []).append(node)
    return _Source(frozenset(codes), functions)


def _within(place: Any, node: Any) -> bool:
    first, last, start, end = place
    return bool(
        (node.lineno, node.col_offset) <= (first, start)
        and (last, end) <= (node.end_lineno, node.end_col_offset)
    )


def spelled(node: Any) -> Any:
    """Return a syntax tree as lists, the same in every version of Python, without secrets."""
    secrets = {id(one) for one in secrets_written(node)}

    def told(one: Any) -> Any:
        if isinstance(one, list):
            return [told(part) for part in one]
        if not isinstance(one, ast.AST):
            return str(one)
        if isinstance(one, ast.Constant):
            value = None if id(one) in secrets else one.value
            said = without_secrets(value) if isinstance(value, str) else repr(value)
            return [type(value).__name__, said]
        fields = {name: getattr(one, name, None) for name in one._fields if name not in _UNSAID}
        if isinstance(one, _DOCUMENTED) and ast.get_docstring(one, clean=False) is not None:
            fields["body"] = one.body[1:]
        parts = [[name, told(part)] for name, part in sorted(fields.items()) if part]
        return [type(one).__name__, *parts]

    return told(node)


def globals_of(function: types.FunctionType, tree: ast.AST) -> set[str]:
    """Return the names that a function, and functions within it, take from its module."""
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return named.intersection(_loaded(function.__code__))


def _loaded(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname.startswith("LOAD_") and step.opname.endswith(("GLOBAL", "GLOBALS", "NAME")):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _loaded(inner)


def changed_by(tree: ast.AST | None) -> set[str]:
    """Return what a function rebinds outside itself or changes: ``seen``, ``self.calls``."""
    changed: set[str] = set()
    for node in [] if tree is None else ast.walk(tree):
        target: Any = None
        if isinstance(node, ast.Global | ast.Nonlocal):
            changed.update(node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _CHANGES:
            target = getattr(node.func, "value", None)
        elif not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            target = node if isinstance(node, ast.Attribute | ast.Subscript) else None
        while isinstance(target, ast.Subscript):
            target = target.value
        owner = target.value if isinstance(target, ast.Attribute) else target
        if isinstance(owner, ast.Name):
            changed.add(owner.id if owner is target else f"{owner.id}.{target.attr}")
    return changed


def is_open(tree: ast.AST, is_own: Callable[[str], bool]) -> bool:
    """Tell whether a function imports the user's modules, or looks names up when called."""
    for node in ast.walk(tree):
        if getattr(node, "id", "") in _LOOKS_UP or getattr(node, "attr", "") == "import_module":
            return True
        if isinstance(node, ast.Import) and any(is_own(alias.name) for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.level or is_own(node.module or "")):
            return True
    return False
