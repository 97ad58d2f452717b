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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval._io import check_apart, replacing
from krag_eval.conventions import AveragingMethod, Conventions
from krag_eval.documents import DocumentLike, Judged, Tag, id_of, is_tag, metadata_of
from krag_eval.errors import InvalidInput, Place, clipped
from krag_eval.matching.joins import Pieces
from krag_eval.results.evidence import Evidence, StoredTexts, Texts
from krag_eval.results.latency import RetrievalRun
from krag_eval.results.result import EvaluationResult
from krag_eval.results.rows import (
    DIGEST,
    JudgedRows,
    RowsInMemory,
    checked_digests,
    rows_named,
)
from krag_eval.scoring.cutoffs import spelled, unspelled
from krag_eval.scoring.metrics import completed, metrics_of
from krag_eval.scoring.parts import Summary, declared_in, declared_of, keys_of
from krag_eval.scoring.relevance import Aspects, Relevance, RelevanceTogether

_FORMAT = "krag_eval.result"
FORMAT_VERSION = 1
# No list is that long, and a query with more could not be explained.
_MOST_RETRIEVED = 10**7
_OUTCOMES = ("passed", "inconclusive", "failed")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Content: TypeAlias = dict[str, Any]


def write(path: str | os.PathLike[str], result: EvaluationResult, *, texts: bool = False) -> None:
    """Save a result; the file appears complete or not at all.

    Args:
        path: The file; one of that name is replaced.
        result: What to save.
        texts: Whether to keep the documents' texts too, each distinct one once, and with them ids
            and those values of metadata that are short texts, numbers or booleans.

    Raises:
        ValueError: If ``texts`` are asked for and the result has none, or the file is the one its
            rows are in.
    """
    check_not_its_rows(result, path)
    text = as_text(result, path, texts=texts)
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


def check_not_its_rows(result: EvaluationResult, path: str | os.PathLike[str]) -> None:
    """Refuse to write onto the file that a result reads its rows from.

    Raises:
        ValueError: If ``path`` is that file.
    """
    check_apart({"path": path}, filter(None, [result.rows.path]))


def as_text(result: EvaluationResult, path: str | os.PathLike[str], *, texts: bool = False) -> str:
    """Return what :func:`write` writes; ``path`` says where rows in a file are seen from."""
    content = _content(result, path, texts=texts)
    # Later additions, which earlier readers pass over.
    if result.retrieval is not None:
        content["retrieval"] = result.retrieval.content()
    if result.made is not None:
        content["made"] = result.made.isoformat(timespec="milliseconds")
    if result.gate is not None:
        content["gate"] = result.gate
    return _laid_out(content)


def note_gate(path: str | os.PathLike[str], outcome: str, result: EvaluationResult) -> None:
    """Write into the file of a result what became of the gate that it was held to.

    Nothing else in it changes, nor do the mode of the file and its time, by which old results are
    ordered.

    Raises:
        InvalidInput: If the file holds another result than that one by now.
        OSError: If the file is read-only, or cannot be written.
    """
    kept, content = os.stat(path), _loaded(path)
    if not (kept.st_mode & stat.S_IWUSR and os.access(path, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    held = _result_of(dict(content), path)
    if held.made != result.made or held != result:
        raise _unusable(path, "it holds another result by now", "check that one, too")
    del content["checksum"]
    with replacing(path) as temporary:
        temporary.write_text(_laid_out(content | {"gate": outcome}), "utf-8")
        os.chmod(temporary, stat.S_IMODE(kept.st_mode))
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))


def _laid_out(content: Content) -> str:
    """Return the text of a file, with its checksum."""
    content["checksum"] = _checksum(content)
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a character cannot be written as UTF-8; JSON can spell it.
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read(path: str | os.PathLike[str]) -> EvaluationResult:
    """Read a saved result.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is not such a result, of another format, or damaged.
    """
    return _result_of(_loaded(path), path)


def _result_of(content: Content, path: str | os.PathLike[str]) -> EvaluationResult:
    """Return the result that a file holds, checked."""
    try:
        if content.pop("checksum") != _checksum(content):
            raise ValueError("its checksum does not fit its content, so it was changed or cut")
        result = EvaluationResult(**_parts(content, Path(path)))
        if _without_nan(result.to_dict()) != content["metrics"]:
            raise ValueError("its averages do not follow from its per-query values")
    except KeyError as error:
        raise _unusable(path, f"the saved result is damaged (no {error})") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
        raise _unusable(path, f"the saved result is damaged ({error})") from error
    except RecursionError as error:
        raise _unusable(path, "the saved result is damaged (nested too deeply)") from error
    except MemoryError as error:
        raise _unusable(path, _TOO_LARGE) from error
    return result


_TOO_LARGE = "what it holds does not fit into memory"
_HOW_TO_SAVE = "save one with to_json in Python, or with krag-eval evaluate … --json OUT"


def _unusable(path: str | os.PathLike[str], problem: str, fix: str = "") -> InvalidInput:
    return InvalidInput("", problem, fix, place=Place(os.fsdecode(path)))


def _loaded(path: str | os.PathLike[str]) -> Content:
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
        raise _unusable(
            path,
            f"saved in format {clipped(version)}, and this version of krag_eval reads format "
            f"{FORMAT_VERSION}",
            "a newer version may read it",
        )
    return content


def _checksum(content: Content) -> str:
    # Of the values, not of the bytes: laying the file out anew is not damage.
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _content(result: EvaluationResult, path: str | os.PathLike[str], *, texts: bool) -> Content:
    common = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "signature": result.signature,
        "settings": dict(result.settings),
        "averaging_method": result.averaging_method.value,
        "conventions": str(result.conventions),
        "metrics": _without_nan(result.to_dict()),
        "keys": dict(result.keys),
        **declared_in(result.declared),
    }
    if result.totals is None:
        return common | _whole_content(result, texts=texts)
    if texts:
        raise InvalidInput("texts", ": a run in parts keeps no texts", "save it without them")
    rows = result.rows.path
    is_beside = rows is not None and str(rows.parent) == os.path.dirname(os.path.realpath(path))
    return common | {
        "summary": result.totals.to_json(),
        "rows": rows and (rows.name if is_beside else str(rows)),
    }


def _whole_content(result: EvaluationResult, *, texts: bool) -> Content:
    """Return what is kept of a run whose rows are in memory."""
    evidence, rows = result.evidence, result.rows
    if texts and (evidence is None or evidence.texts is None):
        raise InvalidInput(
            "texts", ": this result has no texts to keep; it was read from a file without them"
        )
    # A later addition too; what 0.1.0 saved has none.
    digests = {} if rows.digests is None else {DIGEST: list(rows.digests)}
    tags = {"tags": dict(rows.tags)} if rows.tags else {}
    judged = {} if rows.judged is None else {"judged": _judged_content(rows.judged, evidence)}
    return {
        "queries": rows.labels,
        "counted": rows.counted.tolist(),
        **digests,
        **tags,
        **judged,
        "per_query": {
            spelled(k): {name: _listed(column) for name, column in table.items()}
            for k, table in rows.tables.items()
        },
        "evidence": None if evidence is None else _evidence_content(evidence, rows.n_queries),
        "texts": _texts_content(evidence.texts, rows.n_queries)
        if texts and evidence is not None and evidence.texts is not None
        else None,
    }


def _judged_content(judged: JudgedRows, evidence: Evidence | None) -> Content:
    content: Content = {
        "known": [[int(one) for one in flags] for flags in judged.known],
        "keys": judged.keys,
        "digests": judged.digests,
    }
    seen = None if evidence is None else evidence.relevance.looked_at
    if seen is not None:
        content |= {"number": seen.number.tolist(), "others": seen.n_others.tolist()}
    return content


def _judged(content: Content, n_queries: int) -> JudgedRows | None:
    kept = content.get("judged")
    if kept is None:
        return None
    known = [[one == 1 for one in flags] for flags in kept["known"]]
    _check_length(known, n_queries)
    return JudgedRows.checked(known, kept["keys"], kept["digests"])


def _looked_at(content: Content, retrieved: NDArray[np.int64]) -> Judged | None:
    """Return what was looked at, as the evidence holds it."""
    kept, judged = content.get("judged"), _judged(content, len(retrieved))
    if kept is None or judged is None or "number" not in kept:
        return None
    keys = [*chain.from_iterable(judged.keys)]
    number = _whole(kept["number"], len(keys), least=Judged.UNKNOWN)
    return Judged(number, _whole(kept["others"], len(retrieved)), keys, judged.digests)


def _tags(content: Content, n_queries: int) -> dict[str, list[Tag]]:
    """Return the tags of the queries; what 0.1.0 saved has none."""
    tags = content.get("tags", {})
    if not all(len(values) == n_queries and all(map(is_tag, values)) for values in tags.values()):
        raise ValueError("its tags are not one per query")
    return dict(tags)


def _parts(content: Content, path: Path) -> dict[str, Any]:
    """Return the parts of a result, checked for what its methods take for granted."""
    if not all(isinstance(one, str) for pair in content["settings"].items() for one in pair):
        raise TypeError("its settings are not texts")
    common = {
        "settings": content["settings"],
        "keys": keys_of(content),
        "averaging_method": AveragingMethod(content["averaging_method"]),
        "conventions": Conventions.parse(content["conventions"]),
        "declared": declared_of(content),
        "made": _moment(content["made"]) if "made" in content else None,
        "gate": _outcome(content["gate"]) if "gate" in content else None,
    }
    if "summary" not in content:
        return common | _whole_parts(content)
    totals = Summary.from_json(content["summary"])
    beside = Path(os.path.realpath(path)) if path.is_symlink() else path  # as it was written
    return common | {
        "totals": totals,
        "rows": rows_named(content["rows"], beside.parent, totals),
        "retrieval": RetrievalRun.of_content(content.get("retrieval"), totals.n_queries),
    }


def _outcome(text: object) -> str:
    if text not in _OUTCOMES:
        raise ValueError("what became of its gate is unknown")
    return str(text)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the time it was made has no time zone")
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"it was made at {text}, which in UTC is no date") from error
    return moment


def _whole_parts(content: Content) -> dict[str, Any]:
    labels, counted = content["queries"], np.array(content["counted"], np.bool_)
    if not isinstance(labels, list) or not all(type(one) in (str, int) for one in labels):
        raise TypeError("the labels of its queries are not a list of texts and whole numbers")
    tables = {
        unspelled(k): {name: _column(values) for name, values in table.items()}
        for k, table in content["per_query"].items()
    }
    for column in chain([counted], *(table.values() for table in tables.values())):
        _check_length(column, len(labels))
    digests = checked_digests(content[DIGEST], len(labels)) if DIGEST in content else None
    metrics = metrics_of(content["keys"], {})
    tables = {k: completed(table, metrics) for k, table in tables.items()}
    return {
        "rows": RowsInMemory(
            labels,
            tables,
            counted,
            digests,
            _tags(content, len(labels)),
            _judged(content, len(labels)),
        ),
        "evidence": _evidence(content, len(labels)),
        "retrieval": RetrievalRun.of_content(content.get("retrieval"), len(labels)),
    }


def _evidence_content(evidence: Evidence, n_queries: int) -> Content:
    found = evidence.relevance
    lengths = {unit: one.tolist() for unit, one in (found.lengths or {}).items()}
    return {
        "threshold": found.threshold,
        "takes_threshold": evidence.takes_threshold,
        "repeats": found.n_repeats,
        "retrieved": found.n_retrieved.tolist(),
        "items": np.bincount(found.item_query, minlength=n_queries).tolist(),
        "grade": _unless_all_1(found.grade),
        "alternatives": _unless_all_1(found.n_alternatives),
        "number": None if found.item_number is None else found.item_number.tolist(),
        "pairs": np.bincount(found.pair_item, minlength=len(found.item_query)).tolist(),
        "rank": found.pair_rank.tolist(),
        "similarity": _unless_all_1(found.pair_similarity),
        **({"lengths": lengths} if lengths else {}),
        **({} if found.aspects is None else {"aspects": _aspects_content(found.aspects)}),
        **({} if found.pieces is None else {"pieces": _pieces_content(found, found.pieces)}),
    }


def _aspects_content(aspects: Aspects) -> Content:
    return {
        "query": aspects.query.tolist(),
        "item": aspects.item.tolist(),
        "aspect": aspects.aspect.tolist(),
    }


def _aspects(kept: Content) -> Aspects | None:
    if "aspects" not in kept:
        return None
    columns = (kept["aspects"][name] for name in ("query", "item", "aspect"))
    return Aspects(*(_whole(one, len(one)) for one in columns))


def _pieces_content(found: Relevance, pieces: Pieces) -> Content:
    n_alternatives = len(pieces.alternative_item)
    return {
        "union": isinstance(found, RelevanceTogether),
        "tokens": pieces.alternative_tokens.tolist(),
        "document_tokens": pieces.document_tokens.tolist(),
        "added": np.bincount(pieces.added_alternative, minlength=n_alternatives).tolist(),
        "added_rank": pieces.added_rank.tolist(),
        "added_tokens": pieces.added_tokens.tolist(),
        "spans": np.bincount(pieces.span_alternative, minlength=n_alternatives).tolist(),
        "span_rank": pieces.span_rank.tolist(),
        "span_start": pieces.span_start.tolist(),
        "span_stop": pieces.span_stop.tolist(),
    }


def _pieces(kept: Content, n_alternatives: NDArray[np.int64], n_documents: int) -> Pieces:
    """Return the pieces."""
    n = int(n_alternatives.sum())
    added, spans = _whole(kept["added"], n), _whole(kept["spans"], n)
    # Lengths are checked before anything is made as large as a number in the file says.
    added_rank = _whole(kept["added_rank"], sum(added.tolist()), least=1)
    span_rank = _whole(kept["span_rank"], sum(spans.tolist()), least=1)
    return Pieces(
        alternative_item=np.repeat(np.arange(len(n_alternatives)), n_alternatives),
        alternative_tokens=_whole(kept["tokens"], n),
        document_tokens=_whole(kept["document_tokens"], n_documents),
        added_alternative=np.repeat(np.arange(n), added),
        added_rank=added_rank,
        added_tokens=_whole(kept["added_tokens"], len(added_rank), least=1),
        span_alternative=np.repeat(np.arange(n), spans),
        span_rank=span_rank,
        span_start=_whole(kept["span_start"], len(span_rank)),
        span_stop=_whole(kept["span_stop"], len(span_rank), least=1),
    )


def _evidence(content: Content, n_queries: int) -> Evidence | None:
    kept = content["evidence"]
    if kept is None:
        return None
    retrieved, items = _whole(kept["retrieved"], n_queries), _whole(kept["items"], n_queries)
    if retrieved.max(initial=0) > _MOST_RETRIEVED:
        raise ValueError(f"a query retrieved more than {_MOST_RETRIEVED} documents")
    # Lengths are checked before anything is made as large as a number in the file says.
    pairs = _whole(kept["pairs"], sum(items.tolist()))
    ranks = _whole(kept["rank"], sum(pairs.tolist()), least=1)
    n_items, n_pairs = len(pairs), len(ranks)
    n_alternatives = _or_all_1(kept["alternatives"], n_items).astype(np.int64)
    pieces = None
    if "pieces" in kept:
        pieces = _pieces(kept["pieces"], n_alternatives, sum(retrieved.tolist()))
    together = pieces is not None and bool(kept["pieces"]["union"])
    item_query = np.repeat(np.arange(n_queries), items)
    relevance = (RelevanceTogether if together else Relevance)(
        n_retrieved=retrieved,
        item_query=item_query,
        grade=_or_all_1(kept["grade"], n_items),
        n_alternatives=n_alternatives,
        pair_item=np.repeat(np.arange(n_items), pairs),
        pair_rank=ranks,
        pair_similarity=_or_all_1(kept["similarity"], n_pairs),
        threshold=float(kept["threshold"]),
        n_repeats=int(kept["repeats"]),
        item_number=None if kept["number"] is None else _whole(kept["number"], n_items, least=1),
        lengths=_lengths(kept, retrieved),
        pieces=pieces,
        looked_at=_looked_at(content, retrieved),
        aspects=_aspects(kept),
    )
    if (ranks > retrieved[relevance.item_query[relevance.pair_item]]).any():
        raise ValueError("a rank lies beyond the retrieved documents")
    texts = None if content["texts"] is None else _texts(content["texts"], relevance)
    return Evidence(relevance, bool(kept["takes_threshold"]), texts)


def _lengths(kept: Content, retrieved: NDArray[np.int64]) -> dict[str, NDArray[np.int64]] | None:
    """Return the lengths of the retrieved documents, where a budget needed them."""
    if "lengths" not in kept:
        return None
    n_documents = sum(retrieved.tolist())
    return {unit: _whole(one, n_documents) for unit, one in kept["lengths"].items()}


def _texts_content(texts: Texts, n_queries: int) -> Content:
    numbers: dict[str, int] = {}

    def numbered(several: Sequence[str]) -> list[int]:
        return [numbers.setdefault(text, len(numbers)) for text in several]

    actual = [[numbered(item) for item in texts.actual(query)] for query in range(n_queries)]
    predicted = [numbered(texts.predicted(query)) for query in range(n_queries)]
    content = {"distinct": list(numbers), "actual": actual, "predicted": predicted}
    content |= _descriptions(texts, n_queries)
    # Only where it says something: earlier readers know no such entry.
    are_ids = any(map(len, numbers)) and not any(texts.all_predicted())
    return {**content, "are_ids": True} if are_ids else content


def _descriptions(texts: Texts, n_queries: int) -> Content:
    """Return ids and metadata as documents have them, each distinct one once; if there are any."""
    distinct: list[Content] = []
    numbers: dict[str, int] = {}

    def numbered(documents: Sequence[DocumentLike]) -> list[int]:
        return [place(_description(one)) for one in documents]

    def place(one: Content) -> int:
        number = numbers.setdefault(json.dumps(one, sort_keys=True), len(distinct))
        if number == len(distinct):
            distinct.append(one)
        return number

    actual = [[numbered(i) for i in texts.ground_truth(query)] for query in range(n_queries)]
    predicted = [numbered(texts.documents(query)) for query in range(n_queries)]
    if not any(distinct):
        return {}
    return {"described": {"distinct": distinct, "actual": actual, "predicted": predicted}}


def _description(document: DocumentLike) -> Content:
    """Return what is kept of a document beside its text: its id, and short values of metadata.

    >>> _description({"page_content": "a", "id": 7, "metadata": {"page": 3, "chunks": ["b", "c"]}})
    {'id': '7', 'metadata': {'page': 3}}
    >>> _description("a")
    {}
    """
    if isinstance(document, str):
        return {}
    identity = id_of(document)
    metadata = {
        name: one.item() if isinstance(one, np.generic) else one
        for name, one in metadata_of(document).items()
        if isinstance(name, str) and one is not None
    }
    short = {name: one for name, one in metadata.items() if is_tag(one)}
    return ({} if identity is None else {"id": identity}) | ({"metadata": short} if short else {})


def _described(kept: Content, actual: list[Any], predicted: list[Any]) -> Content:
    """Return what was kept beside the texts, if it is of the same documents."""
    if "described" not in kept:  # a later addition
        return {}
    distinct, items, documents = map(kept["described"].get, ("distinct", "actual", "predicted"))
    numbers = [*chain.from_iterable(chain.from_iterable(items)), *chain.from_iterable(documents)]
    sizes = [
        ([list(map(len, of_query)) for of_query in truth], list(map(len, lists)))
        for truth, lists in ((items, documents), (actual, predicted))
    ]
    known = {int} >= set(map(type, numbers)) and all(map(_is_description, distinct))
    if not known or sizes[0] != sizes[1] or not set(numbers) <= set(range(len(distinct))):
        raise ValueError("its ids and metadata are not those of its documents")
    return {
        "described": distinct,
        "actual_described": items,
        "predicted_described": documents,
    }


def _is_description(one: Any) -> bool:
    metadata = one.get("metadata", {})
    return (
        one.keys() <= {"id", "metadata"}
        and isinstance(one.get("id", ""), str)
        and isinstance(metadata, dict)
        and all(map(is_tag, metadata.values()))
    )


def _texts(kept: Content, found: Relevance) -> StoredTexts:
    """Return the texts, if every document and every item has one."""
    distinct, actual, predicted = kept["distinct"], kept["actual"], kept["predicted"]
    items = list(chain.from_iterable(actual))
    numbers = [*chain.from_iterable(items), *chain.from_iterable(predicted)]
    known = {str} >= set(map(type, distinct)) and {int} >= set(map(type, numbers))
    if not known or not all(map(range(len(distinct)).__contains__, numbers)):
        raise ValueError("its texts are not those it numbers")
    listed = np.array([len(of_query) for of_query in actual], np.int64)
    n_retrieved = np.array([len(of_query) for of_query in predicted], np.int64)
    number = found.item_number
    if number is None:
        number = np.arange(len(found.item_query)) + 1
        number -= np.searchsorted(found.item_query, found.item_query)
    if (
        len(listed) != found.n_queries
        or not np.array_equal(n_retrieved, found.n_retrieved)
        or (number > listed[found.item_query]).any()
    ):
        raise ValueError("its texts are not those of its documents")
    return StoredTexts(
        distinct,
        actual,
        predicted,
        bool(kept.get("are_ids", False)),
        **_described(kept, actual, predicted),
    )


def _listed(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    return [None if value != value else value for value in values]


def _column(values: list[Any]) -> NDArray[Any]:
    kinds = set(map(type, values))
    if not kinds <= {int, float, bool, type(None)}:
        raise TypeError("a column holds something that is not a number")
    if kinds <= {int}:
        return np.array(values, np.int64)
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _check_length(values: Any, length: int) -> None:
    if len(values) != length:
        raise ValueError("its parts differ in length")


def _whole(values: list[Any], length: int, least: int = 0) -> NDArray[np.int64]:
    _check_length(values, length)
    if not {int} >= set(map(type, values)):
        raise TypeError("its evidence holds something that is not a whole number")
    array = np.array(values, np.int64)
    if (array < least).any():
        raise ValueError("its evidence does not fit together")
    return array


def _unless_all_1(values: NDArray[Any]) -> list[Any] | None:
    return None if (values == 1).all() else values.tolist()


def _or_all_1(values: list[float] | None, length: int) -> NDArray[np.float64]:
    array = np.ones(length) if values is None else _column(values)
    if array.shape != (length,) or not ((array > 0) & np.isfinite(array)).all():
        raise ValueError("its evidence does not fit together")
    return array.astype(np.float64)


def _without_nan(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
