"""What a thing of the user's is: its name, and a digest of its source and the values bound to it.

Functions, tokenizers, embeddings, metrics and judges go by it in signatures: ``shop.stem#3f2a9c…``.
What is installed is known by its name, what is ours too, and neither has a digest. Whatever is not
plain (a client, a module of the user's, what changes what it holds) is ``#unknown``: nothing is
worked out from what the source does. Nothing is called, no secret gets in, and a text in the home
or working directory counts from there, so that it is the same on every machine.
"""

from __future__ import annotations

import builtins
import datetime
import enum
import hashlib
import inspect
import json
import logging
import os
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from decimal import Decimal
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import accumulate, chain, compress, repeat
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

from krag_eval.core.matching import sources
from krag_eval.core.matching.withheld import is_pydantic_secret, is_secret, without_secrets

#: What stands behind the name of what cannot be told.
UNKNOWN = "#unknown"
_MARK = re.compile(
    r"#(?:[0-9a-f]{12}|unknown)(?![0-9A-Za-z_])|\(settings unknown\)|,settings unknown"
)
# More than this takes long, and is no setting.
_MOST_PARTS = 20_000
_DEEPEST = 60
_LONGEST_SETTING = 10_000
# What LangChain's objects hold beside what they answer with: who is told, how often is tried.
_PLUMBING = frozenset({
    "name", "callbacks", "callback_manager", "tags", "metadata", "run_name", "run_id", "verbose",
    "cache", "rate_limiter", "custom_get_token_ids", "config_factories", "custom_input_type",
    "custom_output_type", "max_concurrency", "recursion_limit", "max_retries", "timeout",
    "request_timeout", "default_request_timeout", "deps", "i",
})  # fmt: skip
_PLAIN = (bool, int, float, complex, type(None), Decimal, uuid.UUID, range, datetime.date,
          datetime.time, datetime.timedelta, datetime.tzinfo)  # fmt: skip
# Where code of ours is, and where it was when marks were first written.
_MOVED = (("krag_eval.core.", "krag_eval."), ("krag_eval.matchers.", "krag_eval.matching."))


def function_name(function: Any, *, marked: bool = True) -> str:
    """Return what a signature calls a function: its qualified name, and a mark of what it holds.

    An attribute ``name`` of a function is taken at its word; that of an object of a class of the
    user's may be any field, so the mark stands behind it.

    Args:
        function: The function.
        marked: Whether the mark is wanted, as in signatures, or the name alone, as in errors.

    >>> function_name(str.split), function_name(partial(str.split, sep=",")).partition("#")[0]
    ('builtins.str.split', 'builtins.str.split(partial)')
    """
    name = _attribute(function, "name")
    named = isinstance(name, str) and bool(name)
    if not marked or (named and not _is_own(type(function))):
        return name if named else _qualified(function)
    return (name if named else _qualified(function)) + mark_of(function)


def _qualified(function: Any) -> str:
    if isinstance(function, partial):
        return f"{_qualified(function.func)}(partial)"
    named: Any = function if _attribute(function, "__qualname__") else type(function)
    # Methods of built-in types have no module.
    module = getattr(named, "__module__", None) or "builtins"
    return f"{_address(module)}.{named.__qualname__}"


def _address(module: str) -> str:
    """Return a module's name as marks have it, which stay the same where code of ours moved.

    >>> _address("krag_eval.core.documents"), _address("krag_eval.matchers.fuzzy"), _address("shop")
    ('krag_eval.documents', 'krag_eval.matching.fuzzy', 'shop')
    """
    for now, before in _MOVED:
        module = before + module.removeprefix(now) if module.startswith(now) else module
    return module


def _attribute(thing: Any, name: str) -> Any:
    """Return an attribute; ``None`` if there is none, or getting it fails."""
    try:
        return getattr(thing, name, None)
    except Exception:  # of what others made, anything may fail
        return None


def mark_of(thing: Any) -> str:
    """Return the mark that stands behind a name: nothing where the name tells all.

    >>> mark_of(len), mark_of(iter("ab")), mark_of(partial(len)) == mark_of(partial(len))
    ('', '#unknown', True)
    """
    with suppress(Exception):  # of what others made, anything may fail
        if _is_known_by_name(thing):
            return ""
    digest, complete = digest_of(thing)
    return f"#{digest[:12]}" if complete else UNKNOWN


def digest_of(*things: Any) -> tuple[str, bool]:
    """Return a digest of what things hold, as far as it can be told, and whether that is all."""
    telling = _Telling()
    try:
        told = json.dumps([telling.of(thing) for thing in things])
    except Exception:
        return "", False
    return hashlib.sha256(told.encode("ascii")).hexdigest(), telling.complete


def bound_values(function: Any) -> dict[str, Any]:
    """Return the plain values that are bound to a function: by partial, a closure or a default."""
    bound: dict[Any, Any] = {}
    while isinstance(function, partial):
        bound = {**dict(enumerate(function.args)), **function.keywords, **bound}
        function = function.func
    function = getattr(function, "__func__", function)
    if isinstance(function, types.FunctionType):
        changed = sources.changed_by(sources.tree_of(function))
        bound = {n: value for n, value in held_by(function).items() if n not in changed} | bound
    plain = {str(name): v for name, v in bound.items() if isinstance(v, (str, *_PLAIN))}
    return {name: value for name, value in plain.items() if not is_secret(name, value)}


def same(ours: str, theirs: str) -> bool | None:
    """Tell whether two parts of signatures name the same; ``None``: they do not tell.

    >>> same("shop.stem#0123456789ab", "shop.stem#0123456789ab"), same("kiwi", "unicode")
    (True, False)
    >>> same("shop.stem#0123456789ab", "shop.stem"), same("stem#unknown", "stem#unknown")
    (None, None)
    """
    (bare, marks), (other, others) = map(_without_marks, (ours, theirs))
    pairs = [(marks.get(place, ""), others.get(place, "")) for place in {**marks, **others}]
    sure = [all(one.startswith("#") and one != UNKNOWN for one in pair) for pair in pairs]
    if bare != other or any(len({*pair}) > 1 for pair in compress(pairs, sure)):
        return False
    return True if all(sure) else None


def _without_marks(text: str) -> tuple[str, dict[int, str]]:
    """Return a part of a signature without marks, and where they stood."""
    bare = _MARK.split(text)
    return "".join(bare), dict(zip(accumulate(map(len, bare)), _MARK.findall(text), strict=False))


def _from_here(text: str) -> str:
    """Return a path as seen from the working directory or from home, if it is in one of them."""
    if not os.path.isabs(text):
        return text
    for name, start in ((".", os.getcwd()), ("~", os.path.expanduser("~"))):
        if text.startswith(start.rstrip(os.sep) + os.sep):
            return (name + text[len(start.rstrip(os.sep)) :]).replace(os.sep, "/")
    return text


def _is_known_by_name(thing: Any) -> bool:
    """Tell whether a name tells all: of ours, and of what is installed and can be imported."""
    if _is_importable(thing):
        return not _is_own(thing)
    ours = type(thing).__module__.startswith("krag_eval.") and _is_importable(type(thing))
    return ours and not _settings(thing)


def _is_importable(function: Any) -> bool:
    """Tell whether a function is what its module has by its name."""
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "builtins")
    for part in getattr(function, "__qualname__", "<none>").split("."):
        found = getattr(found, part, None)
    return found is function


def _is_own(thing: Any) -> bool:
    """Tell whether a function, a class or a module is the user's, neither installed nor ours."""
    by = "__name__" if isinstance(thing, types.ModuleType) else "__module__"
    module = getattr(thing, by, None) or "builtins"
    code = getattr(thing, "__code__", None)  # of a class it is something else
    return _is_own_module(module, code.co_filename if isinstance(code, types.CodeType) else None)


def _is_own_module(module: str, file: str | None = None) -> bool:
    package = module.partition(".")[0]
    if package == "krag_eval" or (package != "__main__" and package in sys.stdlib_module_names):
        return False
    if file is None and module in sys.modules:
        file = getattr(sys.modules[module], "__file__", None)
    elif file is None:
        with suppress(ValueError, ImportError):
            spec = find_spec(package)
            places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
            file = next(filter(None, places), None)
    return not {"site-packages", "dist-packages"} & {*re.split(r"[\\/]", file or "")}


class _Telling:
    """Tells what a thing holds, as lists of texts; ``complete`` until something cannot be told."""

    def __init__(self) -> None:
        self.complete = True
        self._left = _MOST_PARTS
        self._under_way: list[int] = []
        self._told: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        """Return what a value is."""
        self._left -= 1
        if self._left < 0 or len(self._under_way) > _DEEPEST:
            return self._unknown(value)
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            return [type(value).__name__, repr(value)]
        if isinstance(value, str | bytes | bytearray) and not isinstance(value, enum.Enum):
            return [type(value).__name__, _shortened(value)]
        key = id(value)
        if key in self._under_way:  # it holds itself
            return ["above", len(self._under_way) - self._under_way.index(key)]
        if key not in self._told:
            self._under_way.append(key)
            try:
                told = self._thing(value)
            except Exception:
                told = self._unknown(value)
            self._told[key] = told, value  # held, so that its id stays its own
            self._under_way.pop()
        return self._told[key][0]

    def _thing(self, value: Any) -> Any:
        if _is_importable(value) and not _is_own(value):
            return _qualified(value)
        if isinstance(value, Mapping | list | tuple | Set) and len(value) > self._left:
            return self._unknown(value)
        for kinds, tell in self._kinds:
            if isinstance(value, kinds):
                return [type(value).__name__, tell(self, value)]
        return self._object(value)

    def _named(self, values: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Return what values are under their names, but for secrets; whatever their order."""
        told = [(self.of(name), self.of(value)) for name, value in sorted(values, key=_by_name)
                if not is_secret(name, value)]  # fmt: skip
        return sorted(told, key=json.dumps)

    def _items(self, values: Iterable[Any]) -> list[Any]:
        return [self.of(value) for value in values]

    def _unknown(self, value: Any) -> Any:
        self.complete = False
        return ["?", _qualified(type(value))]

    def _function(self, function: types.FunctionType) -> Any:
        """Return the source of a function and the values that it uses."""
        if not _is_own(function):
            return [_qualified(function), self._named(held_by(function).items())]
        if (tree := sources.tree_of(function)) is None:
            return self._unknown(function)
        names, space = sources.globals_of(function, tree), function.__globals__
        used = {**held_by(function), **{name: space[name] for name in names & {*space}}}
        changed = sources.changed_by(tree)
        self.complete &= names <= {*space, *vars(builtins)}
        self.complete &= not sources.is_open(tree, _is_own_module)
        self.complete &= {*used}.isdisjoint(name.partition(".")[0] for name in changed)
        kept = [(name, one) for name, one in used.items() if name not in changed]
        return [sources.spelled(tree), self._named(kept)]

    def _class(self, kind: type) -> Any:
        values = {name: one for name, one in vars(kind).items() if _is_value(name, one)}
        if issubclass(kind, enum.Enum):
            values = {name: one for name, one in values.items() if _is_own(one)}
            values |= {name: one.value for name, one in kind.__members__.items()}
        fields = vars(kind).get("__pydantic_fields__") or vars(kind).get("__annotations__") or {}
        shown = {name: re.sub(r" at 0x\w+", "", repr(one)) for name, one in fields.items()}
        written = _written_by(kind, kind.__name__)
        self.complete &= not written
        bases = self._items(base for base in kind.__bases__ if base is not object)
        own = self._named((name, one) for name, one in values.items() if name not in written)
        return [_qualified(kind), bases, own, self._named(shown.items())]

    def _module(self, module: types.ModuleType) -> str:
        self.complete &= not _is_own(module)  # held, who knows for what
        return f"module {_address(module.__name__)}"

    def _member(self, one: enum.Enum) -> list[Any]:
        own = [self.of(one.value), self.of(type(one))] if _is_own(type(one)) else []
        return [_qualified(type(one)), one.name, *own]

    _kinds: tuple[tuple[Any, Callable[..., Any]], ...] = (
        (types.FunctionType, _function),
        (types.MethodType | types.BuiltinFunctionType, lambda self, method: self._items(
            (getattr(method, "__func__", method.__name__), method.__self__))),
        (types.GenericAlias, lambda self, alias: repr(alias)),
        (type, _class),
        (partial, lambda self, one: self._items((one.func, one.args, one.keywords))),
        (itemgetter | attrgetter | methodcaller, lambda self, one: self.of(one.__reduce__())),
        (enum.Enum, _member),
        (re.Pattern, lambda self, one: [self.of(one.pattern), one.flags]),
        (os.PathLike, lambda self, path: _shortened(os.fspath(path).replace(os.sep, "/"))),
        (Mapping, lambda self, mapping: self._named(mapping.items())),
        (list | tuple, _items),
        (Set, lambda self, values: sorted(self._items(values), key=json.dumps)),
        (types.ModuleType, _module),
        (staticmethod | classmethod, lambda self, method: self.of(method.__func__)),
        (property, lambda self, one: self._items((one.fget, one.fset))),
        (cached_property, lambda self, one: self.of(one.func)),
        (logging.Logger, lambda self, one: None),
    )  # fmt: skip

    def _object(self, value: Any) -> Any:
        """Return the class of an object, and what it holds."""
        kind = type(value)
        if "__wrapped__" in getattr(value, "__dict__", ()) and not _is_own(kind):  # lru_cache
            return [_qualified(kind), self.of(value.__wrapped__)]
        if is_pydantic_secret(value):
            return None
        bare = not (hasattr(value, "__dict__") or _slots(kind)) and not _is_own(kind)
        if bare or kind.__module__ == "threading":  # whose state is of the moment
            return self.of(kind) if kind is object else self._unknown(value)
        held = _settings(value)
        if kind.__name__ in ("RunnableBinding", "RunnableRetry") and _is_langchain(kind):
            return self._binding(held)
        written = set[str]().union(*map(_written_by, filter(_is_own, kind.__mro__)))
        self.complete &= not written
        kept = self._named((name, one) for name, one in held.items() if name not in written)
        return [self.of(kind), kept, []]

    def _binding(self, held: Mapping[str, Any]) -> Any:
        """Return what is bound to a Runnable; where that is nothing, the Runnable alone."""
        config = held.get("config") or {}
        more = {**(held.get("kwargs") or {}), **(config.get("configurable") or {})}
        bound = self.of(held["bound"])
        return [bound, self._named(more.items())] if more else bound


def _is_value(name: str, value: Any) -> bool:
    """Tell whether a class has something of its own under a name; what is generated is not."""
    if isinstance(value, types.FunctionType):
        return not _is_generated(value)
    slot = isinstance(value, types.MemberDescriptorType)
    return not (slot or name.startswith("__") or name == "_abc_impl")


def _is_unset(field: Any, value: Any) -> bool:
    """Tell whether a field of pydantic's is empty of itself, or holds what works beside others."""
    empty = isinstance(value, bool | str | list | dict | None) and not value
    excluded = field is not None and field.exclude and not isinstance(value, (str, *_PLAIN))
    return excluded or (field is not None and empty and bool(field.default == value))


def _is_langchain(kind: type) -> bool:
    return any(base.__module__.startswith("langchain_core.") for base in kind.__mro__)


def _is_plumbing(kind: type, name: str) -> bool:
    """Tell whether LangChain, or who is installed beside it, has a field for other things."""
    others = [one for one in kind.__mro__ if not _is_own(one)]
    return name in _PLUMBING and (
        kind in others or any(name in getattr(one, "__pydantic_fields__", ()) for one in others)
    )


def _by_name(named: tuple[Any, Any]) -> str:
    return named[0] if isinstance(named[0], str) else repr(named[0])


def _shortened(value: Any) -> str:
    if isinstance(value, str):
        short = len(value) <= _LONGEST_SETTING  # a document is no setting, and takes long
        value = _from_here(without_secrets(value)) if short else value
        value = value.encode("utf-8", "surrogatepass")
    return hashlib.sha256(value).hexdigest()


def held_by(function: types.FunctionType) -> dict[str, Any]:
    """Return the values of a function's defaults and its closure, of which a cell may be empty."""
    code, given = function.__code__, function.__defaults__ or ()
    last = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    held = {**dict(zip(last, given, strict=True)), **(function.__kwdefaults__ or {})}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            held[name] = cell.cell_contents
    return {name: one for name, one in held.items() if name != "__class__"}


def _slots(kind: type) -> list[str]:
    named = chain.from_iterable(vars(one).items() for one in kind.__mro__)
    slots = [name for name, one in named if isinstance(one, types.MemberDescriptorType)]
    return [name for name in slots if not name.startswith("__")]


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds under its names; no property is asked."""
    held = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _settings(value: Any) -> dict[str, Any]:
    """Return what an object holds, but for what pydantic and LangChain keep beside settings."""
    kind, held = type(value), attributes(value)
    if (fields := getattr(kind, "__pydantic_fields__", None)) is not None:
        own = filter(_is_own, kind.__mro__)
        ours = set[str]().union(*(vars(one).get("__private_attributes__", ()) for one in own))
        private = getattr(value, "__pydantic_private__", None) or {}
        held |= getattr(value, "__pydantic_extra__", None) or {}
        held |= {name: one for name, one in private.items() if name in ours}
        held = {name: one for name, one in held.items() if not _is_unset(fields.get(name), one)}
    if _is_langchain(kind):
        held = {name: one for name, one in held.items() if not _is_plumbing(kind, name)}
    cached = {name for name in held
              if isinstance(inspect.getattr_static(kind, name, None), cached_property)}  # fmt: skip
    return {name: one for name, one in held.items() if name not in cached}


def _methods(kind: type) -> Iterator[types.FunctionType]:
    """Yield the functions that a class has of its own, whatever they are wrapped in."""
    for one in vars(kind).values():
        for name in ("__func__", "fget", "func", "__wrapped__"):
            one = getattr(one, name, one)
        if isinstance(one, types.FunctionType) and not _is_generated(one):
            yield one


def _written_by(kind: type, owner: str = "") -> set[str]:
    """Return what methods write to their object, or to a class: calls counted, texts remembered."""
    written = set()
    for method in _methods(kind):
        if method.__name__ not in ("__init__", "__post_init__", "model_post_init"):
            paths = map(str.split, sources.changed_by(sources.tree_of(method)), repeat("."))
            first = owner or next(iter(method.__code__.co_varnames), "")
            written |= {path[1] for path in paths if len(path) > 1 and path[0] == first}
    return written


def _is_generated(function: types.FunctionType) -> bool:
    """Tell whether a dataclass wrote a method for itself, from what is told of it anyway."""
    file, module = function.__code__.co_filename, function.__globals__.get("__name__", "")
    return (file.startswith(("<string>", "<attrs")) and function.__name__.startswith("__")) or (
        module.partition(".")[0] in ("dataclasses", "attr", "pydantic")
    )
