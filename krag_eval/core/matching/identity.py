"""What a thing of the user's is: its name, and a digest of what it holds.

Functions, tokenizers, embeddings, metrics and judges go by it in signatures: ``shop.stem#3f2a9c…``.
The digest is of the source (as a syntax tree: comments, docstrings and layout do not matter), of
the values that it uses (closures, defaults, globals, bound arguments) and of what objects were made
with. What is installed is known by its name, what is ours too, and neither has a digest. Where an
object cannot be told, the name ends in ``#unknown``. Nothing is called, no secret gets in, and a
text in the home or working directory counts from there, so that it is the same on every machine.
"""

from __future__ import annotations
import __future__

import ast
import datetime
import enum
import hashlib
import inspect
import json
import linecache
import logging
import os
import re
import sys
import threading
import types
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from copy import copy
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec, resolve_name
from itertools import accumulate, chain, compress
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, NamedTuple

#: What stands behind the name of what cannot be told.
UNKNOWN = "#unknown"
_MARK = re.compile(
    r"#(?:[0-9a-f]{12}|unknown)(?![0-9A-Za-z_])|\(settings unknown\)|,settings unknown"
)
# More than this takes long, and is no setting.
_MOST_PARTS = 20_000
_MOST_BYTES = 1 << 26
_DEEPEST = 60
_LONGEST_SETTING = 10_000

_WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Names of texts that open something; "key" and "token" alone say too little.
_SECRET = re.compile(
    r"(?:^|_)(?:(?:api|access|secret|private|subscription)_?keys?|secret|pass(?:word|wd|phrase)|pwd"
    r"|(?:api|access|auth|bearer|bot|github|hf|id|refresh|session)_?token|authorization|bearer"
    r"|credentials?|cookies?)$"
)
# Secrets within texts: the keys of well-known providers, users of addresses, parts of queries.
_SECRETS_WITHIN = (
    (re.compile(r"\b(?:sk|hf|gsk|ghp|xai|pplx|nvapi|r8)[-_][\w-]{8,}|\b(?:AKIA|AIza|eyJ)[\w.-]{12,}"
                r"|(?i:bearer) [\w.=-]+"), ""),
    (re.compile(r"://[^/@\s]*@"), "://"),
    (re.compile(r"([?&][^=&\s]*(?:key|token|secret|sig|signature|code|password|auth)=)[^&\s]*",
                re.IGNORECASE), r"\1"),
)  # fmt: skip
# What LangChain's objects hold beside what they answer with: who is told, how often is tried.
_PLUMBING = frozenset({
    "name", "callbacks", "callback_manager", "tags", "metadata", "run_name", "run_id", "verbose",
    "cache", "rate_limiter", "custom_get_token_ids", "config_factories", "custom_input_type",
    "custom_output_type", "max_concurrency", "recursion_limit", "max_retries", "timeout",
    "request_timeout", "default_request_timeout", "deps", "i",
})  # fmt: skip
_PLAIN = (bool, int, float, complex, type(None), Decimal, uuid.UUID, range, datetime.date,
          datetime.time, datetime.timedelta, datetime.tzinfo)  # fmt: skip
# What works beside the answers, and says nothing of them.
_BESIDE = (type(threading.Lock()), type(threading.RLock()), threading.local, threading.Event,
           threading.Condition, threading.Semaphore, logging.Logger)  # fmt: skip
_CHANGES = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "move_to_end", "pop",
    "popitem", "popleft", "put", "remove", "setdefault", "update",
})  # fmt: skip
# Where code of ours is, and where it was when marks were first written.
_MOVED = (("krag_eval.core.", "krag_eval."), ("krag_eval.matchers.", "krag_eval.matching."))
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def function_name(function: Any, *, marked: bool = True) -> str:
    """Return what a signature calls a function: its qualified name, and a mark of what it holds.

    An attribute ``name`` of its own, or a property, is taken at its word; one of the class is not,
    where the object holds something.

    Args:
        function: The function.
        marked: Whether the mark is wanted, as in signatures, or the name alone, as in errors.

    >>> function_name(str.split), function_name(partial(str.split, sep=",")).partition("#")[0]
    ('builtins.str.split', 'builtins.str.split(partial)')
    """
    name = _attribute(function, "name")
    if isinstance(name, str) and name:
        kind = type(function)
        fixed = _is_own(kind) and inspect.getattr_static(kind, "name", None) is name
        return name + (mark_of(function) if marked and fixed and _held(function) else "")
    return _qualified(function) + (mark_of(function) if marked else "")


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


def model_name(model: Any) -> str:
    """Return the name that a model of LangChain's goes by, such as ``gpt-4o``; none if unknown."""
    names = (getattr(model, attribute, None) for attribute in ("model", "model_name"))
    return next((name for name in names if isinstance(name, str) and name), "")


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
        written = _written(_found(function))
        bound = {n: one for n, one in held_by(function).items() if n not in written} | bound
    plain = {str(name): one for name, one in bound.items() if isinstance(one, (str, *_PLAIN))}
    return {name: one for name, one in plain.items() if not is_secret(name, one)}


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


def is_secret(name: Any, value: object) -> bool:
    """Tell whether a value is a text that is to be left out for its name.

    >>> is_secret("apiKey", ""), is_secret("access_token", ""), is_secret("token_pattern", "")
    (True, True, False)
    >>> is_secret("api_key", 100), is_secret("key", "title")
    (False, False)
    """
    texts = value is None or isinstance(value, str | bytes) or _is_pydantic_secret(value)
    return texts and isinstance(name, str) and bool(_SECRET.search("_".join(words_of(name))))


def words_of(name: str) -> list[str]:
    """Return the words of a name, whether they are joined by ``_`` or by capitals."""
    return [word.lower() for word in _WORD.findall(name)]


def _is_pydantic_secret(value: object) -> bool:
    kind = type(value)
    return kind.__module__.startswith("pydantic.") and kind.__name__.startswith("Secret")


def without_secrets(text: str) -> str:
    """Return a text without what is a secret by its form.

    >>> without_secrets("https://me:1234@host/v1?api_key=5678&n=3")
    'https://host/v1?api_key=&n=3'
    """
    for pattern, instead in _SECRETS_WITHIN:
        text = pattern.sub(instead, text)
    return text


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
    return ours and not _held(thing)


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
        value = value.item() if _is_numpy(value, "generic") else value
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
        return self._array(value) if _is_numpy(value, "ndarray") else self._object(value)

    def named(self, values: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Return what values are under their names, but for secrets; whatever their order."""
        told = [(self.of(name), self.of(value)) for name, value in sorted(values, key=_by_name)
                if not is_secret(name, value)]  # fmt: skip
        return sorted(told, key=json.dumps)

    def _derived(self, values: Iterable[tuple[str, Any]]) -> list[Any]:
        """Return what values are that follow from others, but for what cannot be told of them."""
        told = []
        for name, value in sorted(values, key=_by_name):
            inner = copy(self)
            inner.complete, inner._told = True, {}
            one = None if is_secret(name, value) else inner.of(value)
            self._left = inner._left
            data = isinstance(value, list | Set | Mapping) or _is_numpy(value, "ndarray")
            if inner.complete or data or self._left < 0:
                self.complete &= inner.complete
                told.append([name, one])
        return [one for one in told if one[1] is not None]

    def _unknown(self, value: Any) -> Any:
        self.complete = False
        return ["?", _qualified(type(value))]

    def _function(self, function: types.FunctionType) -> Any:
        found = _found(function) if _is_own(function) else None
        if found is not None:
            return [_tree(found), self._used(function, found)]
        bound = self.named(held_by(function).items())
        return self._unknown(function) if _is_own(function) else [_qualified(function), bound]

    def _used(self, function: types.FunctionType, node: ast.AST) -> list[Any]:
        """Return the values that a function uses and does not change."""
        written, names, space = _written(node), _names(function.__code__), function.__globals__
        loaded = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        used = {**held_by(function), **{name: space[name] for name in loaded & names & {*space}}}
        used = {name: one for name, one in used.items() if name not in written}
        for name, one in self._imported(node, space):
            self.complete &= used.setdefault(name, one) is one  # now this, now that
        for name, one in [*used.items()]:
            if isinstance(one, types.ModuleType):
                used |= self._of_module(name, one, names)
        return self.named({**used, **self._at_first(function, node, written & names)}.items())

    def _imported(self, node: ast.AST, space: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield what of the user's a function imports itself; what is not loaded is unknown."""
        found = [(one, alias) for one in ast.walk(node) for alias in getattr(one, "names", ())
                 if isinstance(alias, ast.alias)]  # fmt: skip
        for one, alias in found:
            path, name = alias.name, alias.asname or alias.name.partition(".")[0]
            if isinstance(one, ast.ImportFrom):
                path = "." * one.level + (one.module or "")
                path = resolve_name(path, space.get("__package__") or "")
            module = sys.modules.get(path)
            if module is None or not _is_own(module):
                self.complete &= module is not None or not _is_own_module(path)
            elif isinstance(one, ast.Import):
                yield name, module if alias.asname else sys.modules[name]
            else:
                taken = vars(module).get(alias.name, sys.modules.get(f"{path}.{alias.name}"))
                self.complete &= taken is not None
                yield name, taken

    def _of_module(self, name: str, module: types.ModuleType, names: set[str]) -> dict[str, Any]:
        """Return what code of these names uses of a module: config.MODEL, shop.ranking.first."""
        told: dict[str, Any] = {name: f"module {_address(module.__name__)}"}
        if _is_own(module):
            found = {f"{name}.{one}": vars(module)[one] for one in names & {*vars(module)}}
            self.complete &= bool(found)  # getattr(shop, name)
            for path, one in found.items():
                inner = isinstance(one, types.ModuleType) and one is not module
                told |= self._of_module(path, one, names) if inner else {path: one}
        return told

    def _at_first(
        self, function: types.FunctionType, node: ast.AST, written: set[str]
    ) -> dict[str, Any]:
        """Return what variables of the module were before the function changed them."""
        source = _source_of(function.__code__, function.__globals__)
        body: list[Any] = source.tree.body if source else []
        assigned = {getattr(target, "id", ""): one for one in body
                    for target in getattr(one, "targets", ())}  # fmt: skip
        shared = {name for one in ast.walk(node) if isinstance(one, ast.Global)
                  for name in one.names}  # fmt: skip
        found = {}
        for name in written:
            try:
                ast.literal_eval(assigned[name].value)
                found[f"{name} at first"] = json.dumps(_tree(assigned[name]))
            except (KeyError, ValueError, TypeError, SyntaxError, RecursionError):
                self.complete &= name not in shared
        return found

    def _class(self, kind: type) -> Any:
        values = {name: one for name, one in vars(kind).items() if _is_value(name, one)}
        for name in chain(*(_written_to_self(one, kind.__name__) for one in _methods(kind))):
            values.pop(name, None)
        if issubclass(kind, enum.Enum):
            values = {name: one for name, one in values.items() if _is_own(one)}
            values |= {name: one.value for name, one in kind.__members__.items()}
        fields = vars(kind).get("__pydantic_fields__") or vars(kind).get("__annotations__") or {}
        shown = {name: re.sub(r" at 0x\w+", "", repr(one)) for name, one in fields.items()}
        bases = self._items(base for base in kind.__bases__ if base is not object)
        return [_qualified(kind), bases, self.named(values.items()), self.named(shown.items())]

    def _items(self, values: Iterable[Any]) -> list[Any]:
        return [self.of(value) for value in values]

    def _array(self, array: Any) -> Any:
        if array.dtype.hasobject or array.nbytes > _MOST_BYTES:
            return self._unknown(array)
        return [array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).hexdigest()]

    def _module(self, module: types.ModuleType) -> str:
        self.complete &= not _is_own(module)  # held, who knows for what
        return _address(module.__name__)

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
        (Mapping, lambda self, mapping: self.named(mapping.items())),
        (list | tuple, _items),
        (Set, lambda self, values: sorted(self._items(values), key=json.dumps)),
        (types.ModuleType, _module),
        (staticmethod | classmethod, lambda self, method: self.of(method.__func__)),
        (property, lambda self, one: self._items((one.fget, one.fset))),
        (cached_property, lambda self, one: self.of(one.func)),
        (_BESIDE, lambda self, one: None),
    )  # fmt: skip

    def _object(self, value: Any) -> Any:
        """Return the class of an object, and what it was made with."""
        kind = type(value)
        if "__wrapped__" in getattr(value, "__dict__", ()) and not _is_own(kind):  # lru_cache
            return [_qualified(kind), self.of(value.__wrapped__)]
        if _is_pydantic_secret(value):
            return None
        if not (hasattr(value, "__dict__") or _slots(kind)) and not _is_own(kind):
            return self.of(kind) if kind is object else self._unknown(value)
        held = _held(value)
        fields = getattr(kind, "__pydantic_fields__", None)
        if any(one.__module__.startswith("langchain_core.") for one in kind.__mro__):
            if kind.__name__ in ("RunnableBinding", "RunnableRetry"):
                return self._binding(held)
            held = {name: one for name, one in held.items() if not _is_plumbing(kind, name)}
        if fields is None:
            doubtful = _made_of_others(kind, held)
        else:
            held = {name: one for name, one in held.items() if not _is_unset(fields.get(name), one)}
            doubtful = {name for name in held if name.startswith("_")}
        sure = self.named((name, one) for name, one in held.items() if name not in doubtful)
        return [self.of(kind), sure, self._derived((name, held[name]) for name in doubtful)]

    def _binding(self, held: Mapping[str, Any]) -> Any:
        """Return what is bound to a Runnable; where that is nothing, the Runnable alone."""
        config = held.get("config") or {}
        more = {**(held.get("kwargs") or {}), **(config.get("configurable") or {})}
        bound = self.of(held["bound"])
        return [bound, self.named(more.items())] if more else bound


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


def _is_plumbing(kind: type, name: str) -> bool:
    """Tell whether LangChain, or who is installed beside it, has a field for other things."""
    others = [one for one in kind.__mro__ if not _is_own(one)]
    return name in _PLUMBING and (
        kind in others or any(name in getattr(one, "__pydantic_fields__", ()) for one in others)
    )


def _is_numpy(value: Any, kind: str) -> bool:
    numpy = sys.modules.get("numpy")  # what nobody imported nobody holds
    return numpy is not None and isinstance(value, getattr(numpy, kind))


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


def _names(code: types.CodeType) -> set[str]:
    """Return the names that code and the code within it load from its module."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return {*code.co_names}.union(*map(_names, inner))


def _slots(kind: type) -> list[str]:
    named = chain.from_iterable(vars(one).items() for one in kind.__mro__)
    slots = [name for name, one in named if isinstance(one, types.MemberDescriptorType)]
    return [name for name in slots if not name.startswith("__")]


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds under its names; no property is asked."""
    held = {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return held | getattr(value, "__dict__", {})


def _held(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, but for those that its own methods change.

    What it was made with counts in any case.
    """
    kind = type(value)
    held = attributes(value)
    own = [one for one in kind.__mro__ if held and _is_own(one)]
    methods = [one for one in chain.from_iterable(map(_methods, own)) if not _is_maker(one)]
    written = set[str]().union(*map(_written_to_self, methods))
    if (fields := getattr(kind, "__pydantic_fields__", None)) is not None:
        ours = set[str]().union(*(vars(one).get("__private_attributes__", ()) for one in own))
        private = getattr(value, "__pydantic_private__", None) or {}
        held |= getattr(value, "__pydantic_extra__", None) or {}
        held |= {name: one for name, one in private.items() if name in ours}
        in_place = (_written_to_self(one, rebound=False) for one in methods)
        written -= {*fields}.difference(*in_place)
    written -= _made_with(kind) if written else set()
    return {name: one for name, one in held.items() if name not in written and not isinstance(
            inspect.getattr_static(kind, name, None), cached_property)}  # fmt: skip


def _made_of_others(kind: type, held: dict[str, Any]) -> set[str]:
    """Return the attributes that a constructor makes of others, where it keeps all it is given.

    If they cannot be told (a client), the others tell enough.
    """
    constructor = inspect.getattr_static(kind, "__init__")
    if not isinstance(constructor, types.FunctionType):
        return set()
    _, *parameters = inspect.signature(constructor).parameters.values()
    given = {one.name for one in parameters}
    several = any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters)
    if several or not given or not given <= {name.removeprefix("_") for name in held}:
        return set()
    makers = filter(_is_maker, chain.from_iterable(map(_methods, kind.__mro__)))
    derived = set[str]().union(*map(_written_to_self, makers)).intersection(held)
    return {name for name in derived if name.removeprefix("_") not in given}


def _made_with(kind: type) -> set[str]:
    """Return the attributes that constructors make of their arguments alone, or name so."""
    found = set()
    for one in kind.__mro__:
        maker = vars(one).get("__init__")
        if not isinstance(maker, types.FunctionType) or one.__module__.startswith("pydantic."):
            continue
        _, *names = inspect.signature(maker).parameters
        found |= {*names, *(f"_{name}" for name in names)}
        for node in ast.walk(_found(maker) or ast.Module([], [])):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                used = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
                targets = getattr(node, "targets", [getattr(node, "target", None)])
                if used.intersection(names):
                    found |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
    return found


def _is_maker(method: types.FunctionType) -> bool:
    return method.__name__ in ("__init__", "__post_init__", "model_post_init")


def _written_to_self(method: types.FunctionType, *others: str, rebound: bool = True) -> set[str]:
    """Return the attributes of its object, or of the class of a name, that a method changes."""
    ours = (*method.__code__.co_varnames[:1], *others) or ("self",)
    split = [name.partition(".") for name in _written(_found(method), rebound=rebound)]
    return {name for owner, _, name in split if name and owner in ours}


def _methods(kind: type) -> Iterator[types.FunctionType]:
    """Yield the functions that a class has of its own, whatever they are wrapped in."""
    for one in vars(kind).values():
        for name in ("__func__", "fget", "func", "__wrapped__"):
            one = getattr(one, name, one)
        if isinstance(one, types.FunctionType) and not _is_generated(one):
            yield one


def _is_generated(function: types.FunctionType) -> bool:
    """Tell whether a dataclass wrote a method for itself, from what is told of it anyway."""
    file, module = function.__code__.co_filename, function.__globals__.get("__name__", "")
    return (file.startswith(("<string>", "<attrs")) and function.__name__.startswith("__")) or (
        module.partition(".")[0] in ("dataclasses", "attr", "pydantic")
    )


# Sources.


class _Source(NamedTuple):
    """A file as it was compiled: its code, its tree, its functions by name and first line."""

    codes: frozenset[types.CodeType]
    tree: ast.Module
    functions: Mapping[tuple[str, int], list[Any]]


def _found(function: types.FunctionType) -> Any:
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
    return _Source(frozenset(codes), tree, functions)


_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNSAID = ("ctx", "type_comment", "kind")


def _within(place: Any, node: Any) -> bool:
    first, last, start, end = place
    return bool(
        (node.lineno, node.col_offset) <= (first, start)
        and (last, end) <= (node.end_lineno, node.end_col_offset)
    )


def _tree(node: Any) -> Any:
    """Return a syntax tree as lists, the same in every version of Python, without secrets."""
    secrets = {id(one) for one in _secret_values(node)}

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


def _secret_values(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is written beside the name of a secret."""
    pairs: list[tuple[Any, Any]] = []
    for one in ast.walk(tree):
        match one:
            case ast.Assign(targets=targets, value=value):
                pairs += [(target, value) for target in targets]
            case ast.keyword(arg=name, value=value) | ast.AnnAssign(target=name, value=value):
                pairs.append((name, value))
            case ast.Dict(keys=keys, values=values):
                pairs += zip(keys, values, strict=True)
            case ast.arguments():
                by_place = [*one.posonlyargs, *one.args][-len(one.defaults) :]
                pairs += zip(by_place, one.defaults, strict=False)
                pairs += zip(one.kwonlyargs, one.kw_defaults, strict=True)
    for target, value in pairs:
        target = getattr(target, "slice", target)
        found = (getattr(target, a) for a in ("id", "attr", "arg", "value") if hasattr(target, a))
        if isinstance(value, ast.Constant) and is_secret(next(found, target), value.value):
            yield value


def _written(node: Any, *, rebound: bool = True) -> set[str]:
    """Return what a function changes: its memory, not its settings, such as ``self.calls``.

    Or only what it changes in place, and not what it sets to something else.
    """
    found: set[str] = set()
    nodes = [] if node is None else [*ast.walk(node)]
    anew = [target for one in nodes if isinstance(one, ast.Assign) and not rebound
            for target in one.targets if isinstance(target, ast.Attribute)]  # fmt: skip
    for one in nodes:
        if isinstance(one, ast.Global | ast.Nonlocal):
            found.update(one.names)
        changed: Any = None
        if isinstance(one, ast.Subscript | ast.Attribute) and not isinstance(one.ctx, ast.Load):
            changed = None if one in anew else one
        elif isinstance(one, ast.Call) and getattr(one.func, "attr", "") in _CHANGES:
            changed = getattr(one.func, "value", None)
        while isinstance(changed, ast.Subscript):
            changed = changed.value
        if isinstance(changed, ast.Attribute) and isinstance(changed.value, ast.Name):
            found.add(f"{changed.value.id}.{changed.attr}")
        elif isinstance(changed, ast.Name):
            found.add(changed.id)
    return found
