"""What stays out of signatures and digests: keys, passwords and tokens, by name and by form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

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
)  # fmt: skip  # fmt: skip


def is_secret(name: Any, value: object) -> bool:
    """Tell whether a value is a text that is to be left out for its name.

    >>> is_secret("apiKey", ""), is_secret("access_token", ""), is_secret("token_pattern", "")
    (True, True, False)
    >>> is_secret("api_key", 100), is_secret("key", "title")
    (False, False)
    """
    texts = value is None or isinstance(value, str | bytes) or is_pydantic_secret(value)
    return texts and isinstance(name, str) and bool(_SECRET.search("_".join(words_of(name))))


def words_of(name: str) -> list[str]:
    """Return the words of a name, whether they are joined by ``_`` or by capitals."""
    return [word.lower() for word in _WORD.findall(name)]


def is_pydantic_secret(value: object) -> bool:
    """Tell whether a value is a ``SecretStr`` or the like of pydantic's."""
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


def secrets_written(tree: ast.AST) -> Iterator[ast.AST]:
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
