"""The file a result is saved in: JSON that reads back whole, or is refused with a reason.

Format 1 is one JSON object. A run in parts has its sums in ``summary`` and no per-query values
in it. Arrays are lists; numbers are written so that they read back to the
last bit; what is undefined is ``null``; ``checksum`` covers everything beside itself.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import documents
from krag_eval.core.conventions import AveragingMethod, Conventions
from krag_eval.core.documents import AnyOf, DocumentLike, Judged, Lists, QuerySet
from krag_eval.core.errors import InvalidInput, Place, Refusal, clipped
from krag_eval.core.files import changing, check_apart, replacing
from krag_eval.core.matching.joins import Pieces
from krag_eval.core.results.evidence import Evidence, Texts
from krag_eval.core.results.facts import ResultFacts
from krag_eval.core.results.latency import RetrievalRun
from krag_eval.core.results.rows import (
    DIGEST,
    JudgedRows,
    RowsInMemory,
    checked_digests,
    rows_named,
)
from krag_eval.core.results.verdicts import OUTCOMES, Outcome, Verdicts
from krag_eval.core.scoring.cutoffs import spelled, unspelled
from krag_eval.core.scoring.metrics import completed, metrics_of
from krag_eval.core.scoring.parts import Summary, declared_in, metrics_in
from krag_eval.core.scoring.relevance import Aspects, Beside, Relevance, RelevanceTogether

_FORMAT = "krag_eval.result"
FORMAT_VERSION = 1
# No list is that long, and a query with more could not be explained.
_MOST_RETRIEVED = 10**7
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_LARGE = "what it holds does not fit into memory"
# What reading a file raises that holds something else.
_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_HOW_TO_SAVE = "save one with to_json in Python, or with krag-eval evaluate … --json OUT"

Result = TypeVar("Result", bound=ResultFacts)
Content: TypeAlias = dict[str, Any]
_Ints: TypeAlias = NDArray[np.int64]
_Path: TypeAlias = "str | os.PathLike[str]"
#: Positions of texts and of descriptions, each by query.
_Numbers: TypeAlias = tuple[list[Any], list[Any]]


def write(path: _Path, result: ResultFacts, *, texts: bool = False) -> None:
    """Save a result; the file appears complete or not at all.

    Args:
        path: The file; one of that name is replaced. If it has the same values, and was held to
            gates, what became of these is kept.
        result: What to save.
        texts: Whether to keep the documents' texts too, each distinct one once, and with them ids
            and those values of metadata that are short texts, numbers or booleans.

    Raises:
        ValueError: If ``texts`` are asked for and the result has none, or the file is the one its
            rows are in.
    """
    check_not_its_rows(result, path)
    with changing(path):
        text = as_text(_with_verdicts_of_file(result, path), path, texts=texts)
        with replacing(path) as temporary:
            temporary.write_text(text, "utf-8")


def _with_verdicts_of_file(result: ResultFacts, path: _Path) -> ResultFacts:
    """Return a result with what became of the gates that the values in a file were held to.

    A file that holds none, or anything else, is about to be replaced, and says nothing.
    """
    with suppress(Refusal, OSError):
        if os.path.isfile(path) and (content := _loaded(path)).get("gate") is not None:
            saved = _result_of(content, path, ResultFacts)
            if saved == result:
                return result.with_verdicts(saved.gate, saved.verdicts)
    return result


def check_not_its_rows(result: ResultFacts, path: _Path) -> None:
    """Refuse to write onto the file that a result reads its rows from.

    Raises:
        ValueError: If ``path`` is that file.
    """
    check_apart({"path": path}, filter(None, [result.rows.path]))


def note_gate(path: _Path, gate: Outcome, verdicts: Verdicts, result: ResultFacts) -> None:
    """Write into the file of a result what became of the gate that it was held to.

    It is added to what the file says of earlier gates, of which no failure is taken back. Nothing
    else in it changes, nor do the mode of the file and its time, by which old results are ordered.
    Of several at once, one writes after the other.

    Args:
        path: The file.
        gate: What became of the conditions together.
        verdicts: What became of each.
        result: The result that it is to hold.

    Raises:
        InvalidInput: If the file holds another result than that one by now.
        OSError: If the file is read-only, or cannot be written.
    """
    with changing(path):
        kept, content = os.stat(path), _loaded(path)
        if not (kept.st_mode & stat.S_IWUSR and os.access(path, os.W_OK)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
        saved = _result_of(dict(content), path, ResultFacts)
        if not saved.is_same_run(result):
            raise _unusable(path, "it holds another result by now", "check that one, too")
        del content["checksum"]
        content |= _verdicts_content(saved.with_verdicts(gate, verdicts))
        with replacing(path) as temporary:
            temporary.write_text(_laid_out(content), "utf-8")
            os.chmod(temporary, stat.S_IMODE(kept.st_mode))
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))


def _verdicts_content(result: ResultFacts) -> Content:
    """Return what a file says of gates: the outcome of all, as earlier readers know it, and each.

    Nothing where there was none.
    """
    of_each = {"verdicts": dict(result.verdicts)} if result.verdicts else {}
    return of_each if result.gate is None else {"gate": result.gate} | of_each


def read(path: _Path, kind: type[Result]) -> Result:
    """Read a saved result.

    Args:
        path: The file.
        kind: The class of the result.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is not such a result, of another format, or damaged.
    """
    return _result_of(_loaded(path), path, kind)


# The text of a file


def _laid_out(content: Content) -> str:
    """Return the text of a file, with its checksum."""
    text = _as_json(content | {"checksum": _checksum(content)}, ensure_ascii=False)
    # Half of a character cannot be written as UTF-8; JSON can spell it.
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _checksum(content: Content) -> str:
    # Of the values, not of the bytes: laying the file out anew is not damage.
    return hashlib.sha256(_as_json(content).encode("ascii")).hexdigest()


def _as_json(content: Content, *, ensure_ascii: bool = True) -> str:
    return json.dumps(
        content,
        ensure_ascii=ensure_ascii,
        allow_nan=False,
        separators=(",", ":"),
        default=_listed,
    )


def _listed(column: NDArray[Any]) -> list[Any]:
    """Return an array as JSON has it."""
    values: list[Any] = column.tolist()
    is_whole = column.dtype.kind != "f"
    return values if is_whole else [None if value != value else value for value in values]


def _loaded(path: _Path) -> Content:
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except FileNotFoundError as error:
        missing = FileNotFoundError(f"{path}: no such file; check the path.")
        missing.errno = error.errno
        raise missing from error
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"not a saved krag_eval result: {error}", _HOW_TO_SAVE) from error
    except MemoryError as error:
        raise _unusable(path, _TOO_LARGE) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        problem = f"not a saved krag_eval result (no 'format': '{_FORMAT}')"
        raise _unusable(path, problem, _HOW_TO_SAVE)
    if "format_version" not in content:
        problem = "the saved result is damaged (it does not say which format it is in)"
        raise _unusable(path, problem, _HOW_TO_SAVE)
    version = content["format_version"]
    if isinstance(version, bool) or version != FORMAT_VERSION:
        problem = f"saved in format {clipped(version)}, and this version of krag_eval reads format "
        raise _unusable(path, f"{problem}{FORMAT_VERSION}", "a newer version may read it")
    return content


def _unusable(path: _Path, problem: str, fix: str = "") -> InvalidInput:
    return InvalidInput("", problem, fix, place=Place(os.fsdecode(path)))


def _result_of(content: Content, path: _Path, kind: type[Result]) -> Result:
    """Return the result that a file holds, checked."""
    try:
        if content.pop("checksum") != _checksum(content):
            raise ValueError("its checksum does not fit its content, so it was changed or cut")
        result = kind(**_parts(content, Path(path)))
        if _without_nan(result) != content["metrics"]:
            raise ValueError("its averages do not follow from its per-query values")
    except MemoryError as error:
        raise _unusable(path, _TOO_LARGE) from error
    except _DAMAGE as error:
        why = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise _unusable(path, f"the saved result is damaged ({why})") from error
    return result


def _without_nan(result: ResultFacts) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in result.to_dict().items()}


# A result as a file has it, and back


def as_text(result: ResultFacts, path: _Path, *, texts: bool = False) -> str:
    """Return what :func:`write` writes; ``path`` says where rows in a file are seen from."""
    content: Content = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "signature": result.signature,
        "settings": dict(result.settings),
        "averaging_method": result.averaging_method.value,
        "conventions": str(result.conventions),
        "metrics": _without_nan(result),
        "keys": dict(result.keys),
        **declared_in(result.declared),
    }
    if result.totals is None:
        content |= _whole_content(result, texts=texts)
    elif texts:
        raise InvalidInput("texts", ": a run in parts keeps no texts", "save it without them")
    else:
        rows = result.rows.path
        is_beside = rows is not None and str(rows.parent) == os.path.dirname(os.path.realpath(path))
        content["summary"] = result.totals.to_json()
        content["rows"] = rows and (rows.name if is_beside else str(rows))
    # Later additions, which earlier readers pass over.
    if result.retrieval is not None:
        content["retrieval"] = result.retrieval.content()
    if result.made is not None:
        content["made"] = result.made.isoformat(timespec="milliseconds")
    return _laid_out(content | _verdicts_content(result))


def _parts(content: Content, path: Path) -> dict[str, Any]:
    """Return the parts of a result, checked for what its methods take for granted."""
    if not all(isinstance(one, str) for pair in content["settings"].items() for one in pair):
        raise TypeError("its settings are not texts")
    gate, verdicts = content.get("gate"), content.get("verdicts", {})
    if not {gate, *verdicts.values()} <= {None, *OUTCOMES}:
        raise ValueError("what became of its gate is unknown")
    parts = {
        "settings": content["settings"],
        **metrics_in(content),
        "averaging_method": AveragingMethod(content["averaging_method"]),
        "conventions": Conventions.parse(content["conventions"]),
        "made": _moment(content["made"]) if "made" in content else None,
        "gate": gate,
        "verdicts": verdicts,
    }
    if "summary" in content:
        totals = parts["totals"] = Summary.from_json(content["summary"])
        beside = Path(os.path.realpath(path)) if path.is_symlink() else path  # as it was written
        rows = rows_named(content["rows"], beside.parent, totals)
    else:
        rows = _rows(content)
        parts["evidence"] = _evidence(content, rows.n_queries)
    retrieval = RetrievalRun.of_content(content.get("retrieval"), rows.n_queries)
    return {**parts, "rows": rows, "retrieval": retrieval}


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the time it was made has no time zone")
    moment.astimezone(UTC)  # refuses what is no date there
    return moment


def _whole_content(result: ResultFacts, *, texts: bool) -> Content:
    """Return what is kept of a run whose rows are in memory."""
    evidence, rows = result.evidence, result.rows
    kept = None if evidence is None or not texts else evidence.texts
    if texts and kept is None:
        problem = ": this result has no texts to keep; it was read from a file without them"
        raise InvalidInput("texts", problem)
    content: Content = {"queries": rows.labels, "counted": rows.counted}
    # Later additions, too; what 0.1.0 saved has none.
    if rows.digests is not None:
        content[DIGEST] = list(rows.digests)
    if rows.unwanted is not None:
        content["unwanted"] = list(rows.unwanted)
    if rows.tags:
        content["tags"] = dict(rows.tags)
    if rows.judged is not None:
        known = [list(map(int, flags)) for flags in rows.judged.known]
        content["judged"] = rows.judged._asdict() | {"known": known}
        if evidence is not None and (seen := evidence.relevance.looked_at) is not None:
            content["judged"] |= {"number": seen.number, "others": seen.n_others}
    return content | {
        "per_query": {spelled(k): dict(table) for k, table in rows.tables.items()},
        "evidence": None if evidence is None else _evidence_content(evidence, rows.n_queries),
        "texts": None if kept is None else _texts_content(kept, rows.n_queries),
    }


def _rows(content: Content) -> RowsInMemory:
    labels, counted = content["queries"], np.array(content["counted"], np.bool_)
    if not isinstance(labels, list) or not all(type(one) in (str, int) for one in labels):
        raise TypeError("the labels of its queries are not a list of texts and whole numbers")
    n_queries, metrics, tags = len(labels), metrics_of(content["keys"], {}), content.get("tags", {})
    tables = {
        unspelled(k): {name: _column(values) for name, values in table.items()}
        for k, table in content["per_query"].items()
    }
    columns = chain([counted], tags.values(), *(table.values() for table in tables.values()))
    if any(len(column) != n_queries for column in columns):
        raise ValueError("its parts differ in length")
    if not all(map(documents.is_tag, chain.from_iterable(tags.values()))):
        raise ValueError("its tags are no tags")
    return RowsInMemory(
        labels,
        {k: completed(table, metrics) for k, table in tables.items()},
        counted,
        checked_digests(content[DIGEST], n_queries) if DIGEST in content else None,
        dict(tags),
        _judged(content, n_queries),
        checked_digests(content["unwanted"], n_queries) if "unwanted" in content else None,
    )


def _column(values: list[Any]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if not kinds <= {int, float, bool, type(None)}:
        raise TypeError("a column holds something that is not a number")
    if kinds <= {int}:
        return np.array(values, np.int64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _judged(content: Content, n_queries: int) -> JudgedRows | None:
    if "judged" not in content:
        return None
    kept = content["judged"]
    known = [[one == 1 for one in flags] for flags in kept["known"]]
    if len(known) != n_queries:
        raise ValueError("its parts differ in length")
    return JudgedRows.checked(known, kept["keys"], kept["digests"])


# The evidence


def _evidence_content(evidence: Evidence, n_queries: int) -> Content:
    found = evidence.relevance
    content: Content = {
        "threshold": found.threshold,
        "takes_threshold": evidence.takes_threshold,
        "repeats": found.n_repeats,
        "retrieved": found.n_retrieved,
        "items": np.bincount(found.item_query, minlength=n_queries),
        "grade": _unless_all_1(found.grade),
        "alternatives": _unless_all_1(found.n_alternatives),
        "number": found.item_number,
        "pairs": np.bincount(found.pair_item, minlength=len(found.item_query)),
        "rank": found.pair_rank,
        "similarity": _unless_all_1(found.pair_similarity),
    }
    if found.lengths:
        content["lengths"] = dict(found.lengths)
    if found.aspects is not None:
        content["aspects"] = {name: getattr(found.aspects, name) for name in _ASPECTS}
    if found.beside:
        content["beside"] = {
            name: {
                "listed": np.asarray(one.listed, np.int64),
                **_evidence_content(replace(evidence, relevance=one.found), n_queries),
            }
            for name, one in found.beside.items()
        }
    if (pieces := found.pieces) is not None:
        content["pieces"] = {
            "union": isinstance(found, RelevanceTogether),
            "tokens": pieces.alternative_tokens,
            "document_tokens": pieces.document_tokens,
        }
        kinds = _HELD | (_CONTRADICTED if len(pieces.contradicted_alternative) else {})
        kinds |= _EDGES if len(pieces.edge_alternative) else {}
        for name, (of_rows, *columns) in kinds.items():
            n = np.bincount(getattr(pieces, of_rows), minlength=len(pieces.alternative_item))
            content["pieces"] |= {name: n, **{one: getattr(pieces, one) for one in columns}}
    return content


_ASPECTS = ("query", "item", "aspect")
# What says in a file how many rows each alternative has -> what these are of, and their columns.
_HELD = {
    "added": ("added_alternative", "added_rank", "added_tokens"),
    "brought": ("brought_alternative", "brought_rank", "brought_start", "brought_stop"),
    "spans": ("span_alternative", "span_rank", "span_start", "span_stop"),
}
_CONTRADICTED = {
    "contradicted": ("contradicted_alternative", "contradicted_rank", "contradicted_share"),
    "agreed": ("agreed_alternative", "agreed_rank", "agreed_tokens"),
}
_EDGES = {"edges": ("edge_alternative", "edge_rank", "edge_at", "edge_start", "edge_stop")}


def _evidence(content: Content, n_queries: int) -> Evidence | None:
    kept = content["evidence"]
    if kept is None:
        return None
    retrieved, items = _whole(kept["retrieved"], n_queries), _whole(kept["items"], n_queries)
    if retrieved.max(initial=0) > _MOST_RETRIEVED:
        raise ValueError(f"a query retrieved more than {_MOST_RETRIEVED} documents")
    # Lengths are checked before anything is made as large as a number in the file says.
    pairs = _whole(kept["pairs"], items)
    ranks = _whole(kept["rank"], pairs, least=1)
    alternatives = _or_all_1(kept["alternatives"], len(pairs)).astype(np.int64)
    pieces = _pieces(kept["pieces"], alternatives, retrieved) if "pieces" in kept else None
    together = pieces is not None and kept["pieces"]["union"]
    aspects = kept.get("aspects")
    relevance = (RelevanceTogether if together else Relevance)(
        n_retrieved=retrieved,
        item_query=np.repeat(np.arange(n_queries), items),
        grade=_or_all_1(kept["grade"], len(pairs)),
        n_alternatives=alternatives,
        pair_item=np.repeat(np.arange(len(pairs)), pairs),
        pair_rank=ranks,
        pair_similarity=_or_all_1(kept["similarity"], len(ranks)),
        threshold=float(kept["threshold"]),
        n_repeats=int(kept["repeats"]),
        item_number=None if kept["number"] is None else _whole(kept["number"], items, least=1),
        lengths={unit: _whole(one, retrieved) for unit, one in kept.get("lengths", {}).items()}
        or None,
        pieces=pieces,
        looked_at=_looked_at(content, retrieved),
        aspects=aspects
        and Aspects(**{name: _whole(aspects[name], len(aspects[name])) for name in _ASPECTS}),
        beside={
            name: _beside(one, retrieved if name == "unwanted" else None, n_queries)
            for name, one in kept.get("beside", {}).items()
        },
    )
    n_retrieved = retrieved[relevance.item_query]
    beyond = ranks > n_retrieved[relevance.pair_item]
    if pieces is not None:
        item = pieces.alternative_item[pieces.contradicted_alternative]
        beyond = np.append(beyond, pieces.contradicted_rank > n_retrieved[item])
    if beyond.any():
        raise ValueError("a rank lies beyond the retrieved documents")
    evidence = Evidence(relevance, bool(kept["takes_threshold"]))
    if content["texts"] is not None:
        evidence = replace(evidence, texts=_texts(content["texts"], evidence))
    return evidence


def _beside(kept: Content, retrieved: _Ints | None, n_queries: int) -> Beside:
    """Return what was found of another list, in the documents that were retrieved or others."""
    evidence = _evidence({"evidence": kept, "texts": None}, n_queries)
    listed = _whole(kept["listed"], n_queries) == 1
    if evidence is None or (
        retrieved is not None and (evidence.relevance.n_retrieved != retrieved).any()
    ):
        raise ValueError("its evidence does not fit together")
    return Beside(evidence.relevance, listed)


def _pieces(kept: Content, n_alternatives: _Ints, retrieved: _Ints) -> Pieces:
    tokens = _whole(kept["tokens"], n_alternatives)
    rows: dict[str, Any] = {}
    kinds = _HELD | (_CONTRADICTED if "contradicted" in kept else {})
    kinds |= _EDGES if "edges" in kept else {}
    # Files that an unreleased 0.2.0 wrote do not say which words of a document bring something new.
    nothing: Content = {name: [] for name in _HELD["brought"]} | {"brought": [0] * len(tokens)}
    kept = nothing | kept
    for name, (of_rows, *columns) in kinds.items():
        n = _whole(kept[name], len(tokens))
        rows[of_rows] = np.repeat(np.arange(len(tokens)), n)
        for one in columns:
            if one == "contradicted_share":
                rows[one] = _or_all_1(kept[one], int(n.sum()))
            else:
                rows[one] = _whole(kept[one], n, least=int(not one.endswith("_start")))
    return Pieces(
        alternative_item=np.repeat(np.arange(len(n_alternatives)), n_alternatives),
        alternative_tokens=tokens,
        document_tokens=_whole(kept["document_tokens"], retrieved),
        **rows,
    )


def _looked_at(content: Content, retrieved: _Ints) -> Judged | None:
    """Return what was looked at, as the evidence holds it."""
    judged = _judged(content, len(retrieved))
    if judged is None or "number" not in content["judged"]:
        return None
    keys = [*chain.from_iterable(judged.keys)]
    number = _whole(content["judged"]["number"], len(keys), least=Judged.UNKNOWN)
    others = _whole(content["judged"]["others"], len(retrieved))
    return Judged(number, others, keys, judged.digests)


def _whole(values: list[Any], counts: _Ints | int, least: int = 0) -> _Ints:
    """Return whole numbers, of which there must be that many, or that many of each."""
    length = sum(counts.tolist()) if isinstance(counts, np.ndarray) else counts
    if not {int} >= set(map(type, values)) or length != len(values):
        raise TypeError("its evidence does not fit together")
    array = np.array(values, np.int64)
    if (array < least).any():
        raise ValueError("its evidence does not fit together")
    return array


def _unless_all_1(values: NDArray[Any]) -> NDArray[Any] | None:
    return None if (values == 1).all() else values


def _or_all_1(values: list[float] | None, length: int) -> NDArray[np.float64]:
    array = np.ones(length) if values is None else _column(values)
    if array.shape != (length,) or not ((array > 0) & np.isfinite(array)).all():
        raise ValueError("its evidence does not fit together")
    return array.astype(np.float64)


# The texts


def _texts_content(texts: Texts, n_queries: int) -> Content:
    queries = range(n_queries)
    content = _numbered(map(texts.actual, queries), map(texts.predicted, queries), str)
    described = _numbered(
        ([map(_description, item) for item in texts.ground_truth(query)] for query in queries),
        (map(_description, texts.documents(query)) for query in queries),
        lambda one: json.dumps(one, sort_keys=True),
    )
    # Only where it says something: earlier readers know no such entries.
    if any(described["distinct"]):
        content["described"] = described
    if any(content["distinct"]) and not any(texts.all_predicted()):
        content["are_ids"] = True
    return content


def _numbered(
    actual: Iterable[Iterable[Iterable[Any]]],
    predicted: Iterable[Iterable[Any]],
    key: Callable[[Any], str],
) -> Content:
    """Return what is distinct once, and the numbers of what items and documents have of it."""
    distinct: dict[str, Any] = {}
    numbers: dict[str, int] = {}

    def number(one: Any) -> int:
        name = key(one)
        distinct.setdefault(name, one)
        return numbers.setdefault(name, len(numbers))

    of_items = [[list(map(number, item)) for item in items] for items in actual]
    of_documents = [list(map(number, several)) for several in predicted]
    return {"distinct": [*distinct.values()], "actual": of_items, "predicted": of_documents}


def _description(document: DocumentLike) -> Content:
    """Return what is kept of a document beside its text: its id, and short values of metadata.

    >>> _description({"page_content": "a", "id": 7, "metadata": {"page": 3, "chunks": ["b", "c"]}})
    {'id': '7', 'metadata': {'page': 3}}
    >>> _description("a")
    {}
    """
    if isinstance(document, str):
        return {}
    identity = documents.id_of(document)
    metadata = {
        name: one.item() if isinstance(one, np.generic) else one
        for name, one in documents.metadata_of(document).items()
        if isinstance(name, str) and one is not None
    }
    short = {name: one for name, one in metadata.items() if documents.is_tag(one)}
    return ({} if identity is None else {"id": identity}) | ({"metadata": short} if short else {})


def _texts(kept: Content, evidence: Evidence) -> Texts:
    """Return the texts, if every document and every item has one."""
    distinct, actual, predicted = _checked_numbers(kept)
    found = evidence.relevance
    if (
        len(actual) != found.n_queries
        or list(map(len, predicted)) != found.n_retrieved.tolist()
        or any(number > len(actual[query]) for query, number in evidence.items())
        or not all(chain.from_iterable(actual))
        or not all(isinstance(text, str) for text in distinct)
    ):
        raise ValueError("its texts are not those of its documents")
    # A later addition: what else is known of documents.
    known = kept.get("described", kept | {"distinct": [{}] * len(distinct)})
    described, items, retrieved = _checked_numbers(known)
    sizes, expected = (
        ([list(map(len, of_query)) for of_query in of_items], list(map(len, of_documents)))
        for of_items, of_documents in ((items, retrieved), (actual, predicted))
    )
    if sizes != expected or not all(map(_is_description, described)):
        raise ValueError("its ids and metadata are not those of its documents")
    read = partial(_documents, distinct, described, (actual, items), (predicted, retrieved))
    return Texts(read, bool(kept.get("are_ids", False)), were_saved=True)


def _documents(
    distinct: list[str], described: list[Content], items: _Numbers, retrieved: _Numbers
) -> QuerySet:
    """Return documents as they are compared, made of their texts and what else is known of them."""

    @cache
    def document(text: int, description: int) -> DocumentLike:
        known = described[description]
        return {"page_content": distinct[text], **known} if known else distinct[text]

    def item(texts: list[int], descriptions: list[int]) -> DocumentLike | AnyOf:
        alternatives = list(map(document, texts, descriptions))
        return alternatives[0] if len(alternatives) == 1 else AnyOf(alternatives)

    actual = Lists([list(map(item, *both)) for both in zip(*items, strict=True)])
    predicted = Lists([list(map(document, *both)) for both in zip(*retrieved, strict=True)])
    return QuerySet(actual, predicted, [*range(len(actual))])


def _checked_numbers(kept: Content) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what :func:`_numbered` made, if every number is that of something."""
    distinct, actual, predicted = kept["distinct"], kept["actual"], kept["predicted"]
    numbers = [*chain.from_iterable(chain.from_iterable(actual)), *chain.from_iterable(predicted)]
    whole = {int} >= set(map(type, numbers))
    if not whole or not all(map(range(len(distinct)).__contains__, numbers)):
        raise ValueError("its texts are not those it numbers")
    return distinct, actual, predicted


def _is_description(one: Any) -> bool:
    return (
        one.keys() <= {"id", "metadata"}
        and isinstance(one.get("id", ""), str)
        and isinstance(one.get("metadata", {}), dict)
    )
