"""From a file to lines of text, and from text to values: bounded, and strict.

What a file does not show from outside is bounded before it is made: how much compressed data
expands to, how much a pipe or a stream holds, the length of a line. JSON that tools read
differently is refused, and of Python's literals only data is read. An error names the line.
"""

from __future__ import annotations

import ast
import codecs
import csv
import gzip
import io
import json
import math
import os
import re
import stat
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, TypeAlias, cast

from krag_eval.core import Advice, DatasetError, Fix, InvalidInput, Place, Refusal, errors
from krag_eval.core.errors import kind_of

Source: TypeAlias = "str | os.PathLike[str] | IO[bytes] | IO[str]"

#: How much text may come out of what does not show its size: a gibibyte. A single line may hold a
#: quarter of the limit, whatever it comes from.
MAX_BYTES = 2**30

_CHUNK = 2**20
_CELL_LIMIT, _LONGEST_CELL = threading.RLock(), min(sys.maxsize, 2**31 - 1)
# What another encoding must leave as it is.
_ESCAPED = b'\r\n,"a{[\\ud800+2AA-~'
# Every other syllable of a Korean text is one of these, or so; the last six are of column names.
_COMMON = frozenset(
    "이다는의가을를에고은한하도로지기사서나인자해리대일정어시아여스니요습있부수라보제원주전과들상그질문답검색결"
)
# What people pass by mistake, by its first bytes: see file(1)'s list of magic numbers.
_FOREIGN = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive, as Excel's and Word's files are",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "a file of Office before 2007, such as .xls or .doc",
    codecs.BOM_UTF16_LE: "UTF-16 text",
    codecs.BOM_UTF16_BE: "UTF-16 text",
}


def checked_bytes(max_bytes: object) -> int | None:
    """Return a limit of bytes: a whole number of at least 1, or ``None`` for none."""
    return None if max_bytes is None else errors.whole("max_bytes", max_bytes, 1)


def check_encoding(encoding: object) -> None:
    """Refuse an encoding that does not exist, or whose line ends are not those of ASCII.

    Raises:
        InvalidInput: In these cases.
        InvalidType: If it is not text.
    """
    if not isinstance(encoding, str):
        raise errors.must("encoding", "be the name of one", encoding, kind=errors.InvalidType)
    text = _ESCAPED.decode("ascii")
    with suppress(LookupError, ValueError):
        # Python calls some encodings that are ways to escape, of half a character too.
        if text.encode(encoding) == _ESCAPED and _ESCAPED.decode(encoding) == text:
            return
    allowed = "be 'utf-8' or another that contains ASCII, such as 'cp949'"
    raise errors.must("encoding", allowed, encoding, "save UTF-16 and the like as UTF-8 first")


def numbered_lines(
    source: Source,
    name: str,
    max_bytes: int | None = MAX_BYTES,
    encoding: str | None = None,
    *,
    held: bool = True,
    blank: bool = False,
) -> Generator[tuple[int, str], None, None]:
    """Yield the number and the text of each line, line end included.

    The text may be compressed with gzip, which is recognised by content; with a byte order mark
    it is UTF-8.

    Args:
        source: A path or an open file.
        name: What to call it.
        max_bytes: How much may come out of it. Plain files may be as long as they are.
        encoding: Of the text, where the format lets its user choose; UTF-8 if not given.
        held: Whether all of it will be held in memory; if not, only its lines are bounded.
        blank: Whether to yield blank lines, too.

    Raises:
        DatasetError: If the file cannot be read, as far as the lines were asked for.
        InvalidType: If ``source`` is neither a path nor an open file.
    """
    most = checked_bytes(max_bytes)
    longest = -1 if most is None else max(most // 4, 1)
    number = total = 0
    with ExitStack() as stack:
        try:
            opened = _opened(source, name, most, stack)
            stream = _decompressed(opened, name, stack)
            bounded = held and (stream is not opened or not _shows_its_size(opened))
            codec = encoding or "utf-8"
            while line := stream.readline(longest + 1 if most else -1):
                number += 1
                total += len(line)
                if most and len(line) > longest:
                    raise _too_much("the line is", longest, Place(name, number))
                if most and bounded and total > most:
                    raise _too_much("what comes out of it is", most, Place(name, number))
                if number == 1 and line.startswith(codecs.BOM_UTF8):
                    line, codec = line.removeprefix(codecs.BOM_UTF8), "utf-8"
                try:
                    text = line.decode(codec)
                except UnicodeDecodeError as error:
                    raise _not_text(line, error, Place(name, number), encoding) from error
                if blank or not (text.isspace() or not text):
                    yield number, text
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            how = "ends too early" if isinstance(error, EOFError) else f"is damaged ({error})"
            problem = f"the compressed data {how} here; expected a complete gzip file"
            raise Place(name, number + 1).error(problem, "copy it again") from error
        except OSError as error:
            raise cannot_read(error, Place(name, number)) from error


@contextmanager
def located(place: Place) -> Iterator[None]:
    """Let a refusal name a place in a file or a table."""
    try:
        yield
    except Refusal as error:
        raise error.at(place) from error


def cannot_read(error: OSError, place: Place) -> DatasetError:
    """Return the refusal of a file that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return place.error("no such file", "check the path")
    if isinstance(error, IsADirectoryError):
        return place.error("is a directory; expected a file", "name one file in it")
    return place.error(f"cannot be read: {error.strerror or error}")


def next_cells(reader: Iterator[list[str]]) -> list[str] | None:
    """Return the next row of a table; a cell may be as long as a line.

    Python has one limit for all readers, which is only raised meanwhile.
    """
    with _CELL_LIMIT:
        before = csv.field_size_limit(_LONGEST_CELL)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(before)


def _too_much(what: str, most: int, place: Place) -> DatasetError:
    told = "if that is what it holds, {} allows more (a line may hold a quarter), and {} any amount"
    fix = Advice(told, max_bytes=(..., None))
    return place.error(f"{what} longer than {most:,} bytes", fix)


def _shows_its_size(stream: Any) -> bool:
    """Tell whether this is a plain file, or already in memory."""
    raw = getattr(stream, "raw", None)
    if isinstance(raw, io.FileIO):
        return stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    return isinstance(raw, io.BytesIO)


def _opened(source: Source, name: str, most: int | None, stack: ExitStack) -> Any:
    """Return a file that can be looked into."""
    if isinstance(source, str | os.PathLike):
        if "\0" in name:
            raise Place(name).error("the name of a file cannot contain a NUL character")
        return stack.enter_context(open(source, "rb", _CHUNK))
    if not hasattr(source, "read"):
        raise errors.must("source", "be a path or an open file", source, kind=errors.InvalidType)
    if source is sys.stdin:
        # The locale may say ASCII; the formats read here are UTF-8.
        source = getattr(sys.stdin, "buffer", source)
    if hasattr(source, "peek"):
        return source
    content = bytearray()
    try:
        while chunk := source.read(_CHUNK):
            content += chunk if isinstance(chunk, bytes) else chunk.encode("utf-8")
            if most is not None and len(content) > most:
                raise _too_much("what comes out of it is", most, Place(name))
    except UnicodeError as error:
        fix = "open the file in binary mode, or with its own encoding"
        raise Place(name).error(f"not valid text ({error})", fix) from error
    return io.BufferedReader(cast(io.RawIOBase, io.BytesIO(content)))


def _decompressed(stream: Any, name: str, stack: ExitStack) -> Any:
    head = stream.peek(16)[:16]
    if head.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
    for first_bytes, what in _FOREIGN.items():
        if head.startswith(first_bytes):
            problem = f"is {what}; expected UTF-8 text, plain or compressed with gzip"
            raise Place(name).error(problem, "save what it holds as text, or name another file")
    return stream


def _not_text(
    line: bytes, error: UnicodeDecodeError, place: Place, encoding: str | None
) -> DatasetError:
    known = "it is Korean text in CP949 (EUC-KR): " if _is_korean(line) else ""
    fix: Fix = f"{known}save the file as UTF-8"
    if encoding is not None and codecs.lookup(encoding).name != "cp949":
        told = f"{known}name the encoding it was saved in, such as {{}}, or save it as UTF-8"
        fix = Advice(told, encoding="cp949")
    problem = f"byte 0x{line[error.start]:02x} at position {error.start} is not "
    return place.error(f"{problem}{(encoding or 'utf-8').upper()} text", fix)


def _is_korean(line: bytes) -> bool:
    """Tell whether a line is Korean in CP949: all Hangul, and of the syllables that are common.

    The bytes of Chinese and Japanese make rare syllables and Hanja, those of European languages
    nothing at all. Of fewer than four letters nobody can tell.

    >>> [_is_korean(one) for one in ("언제 여나요?".encode("cp949"), "几点开门？".encode("gbk"))]
    [True, False]
    """
    try:
        letters = [one for one in line.decode("cp949") if one > "\x7f" and one.isalpha()]
    except UnicodeDecodeError:
        return False
    n_common = sum(one in _COMMON for one in letters)
    korean = all("가" <= one <= "힣" for one in letters)
    return korean and len(letters) > 3 and n_common > 0.3 * len(letters)


def name_of(source: Source) -> str:
    """Return what to call a source in messages.

    >>> name_of("runs/bm25.trec.gz")
    'runs/bm25.trec.gz'
    """
    if isinstance(source, str | os.PathLike):
        return os.fsdecode(source)
    if source is sys.stdin:
        return "<stdin>"
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


# Values

_SURROGATE = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F]")
_LONGEST_NAME = 40


def object_of(text: str, place: Place, expected: str) -> dict[str, Any]:
    """Return the JSON object on one line.

    Args:
        text: The line.
        place: Where it is.
        expected: The object in words, for the message, such as ``'an object with "_id"'``.

    Raises:
        DatasetError: If the line is anything else.

    >>> object_of('{"_id": "d1"}', Place("corpus.jsonl", 1), "an object")
    {'_id': 'd1'}
    """
    try:
        content = parsed(text)
    except InvalidInput as error:
        raise error.at(place) from error.__cause__
    except json.JSONDecodeError as error:
        if is_of_trec(text):
            problem = "is a line of judgements or of a run as trec_eval reads them, and no JSON"
            raise place.error(problem, FOR_TREC) from error
        fix = "correct the line"
        if text.strip() in ("{", "["):
            fix = _SPREAD
        elif place.line == 1 and _IS_HEADER.match(text):
            fix = "give its name the ending .csv or .tsv, if it is a table"
        raise not_json(error, place, "one complete object per line", fix) from error
    if not isinstance(content, dict):
        fix = "write one object per line, without a list around them"
        raise place.error(f"expected {expected}, got {kind_of(content)}", fix)
    return content


#: Where judgements and runs go, in whatever form.
FOR_TREC = "judgements and runs are for read_trec, or krag-eval trec QRELS RUN"
_SPREAD = (
    "put each object on one line (jq -c does), or all into one array; {topic: {document: number}}: "
    + FOR_TREC
)
# Names of columns, parted by commas, semicolons or tabs.
_IS_HEADER = re.compile(r"""["']?[^\W\d][\w .-]*["']?[,;\t]""")
_OF_TREC = re.compile(
    r"\S+\s+\S+\s+\S+\s+(?:-?\d+|\d+\s+-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s+\S+)\s*"
)


def is_of_trec(line: str) -> bool:
    """Tell whether a line is a judgement, or one of a run, as trec_eval reads them.

    >>> is_of_trec("7 0 d1 1"), is_of_trec("7 Q0 d1 1 2.5 bm25"), is_of_trec('{"query": "7 0 1"}')
    (True, True, False)
    """
    return line[:1] not in ("{", "[", '"') and _OF_TREC.fullmatch(line) is not None


def not_json(
    error: json.JSONDecodeError, place: Place, expected: str, fix: str = "correct the line"
) -> DatasetError:
    """Return the refusal of a text that is not JSON; of one that was cut off, that it ends there.

    Args:
        error: What the decoder says.
        place: Where the text is.
        expected: What should be there.
        fix: What to do where it is not cut off.

    >>> for text in ('{"a": "b', '{"a": ["b"]', '{"a": b}', '{"a": "b}'):
    ...     try:
    ...         parsed(text)
    ...     except json.JSONDecodeError as error:
    ...         print(not_json(error, Place("qa.jsonl", 2), "an object").problem)
    not valid JSON: it ends in the middle; expected an object
    not valid JSON: it ends in the middle; expected an object
    not valid JSON: Expecting value (column 7); expected an object
    not valid JSON: Unterminated string starting at (column 7); expected an object
    """
    problem = f"{error.msg} (column {error.colno})"
    if _is_cut_off(error):
        problem = "it ends in the middle"
        fix = "it was cut off when it was written or copied: write it whole"
    return place.error(f"not valid JSON: {problem}; expected {expected}", fix)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Tell whether a text stops before JSON would; a string without an end may lack a quote."""
    text = error.doc.rstrip()
    if error.msg.startswith("Unterminated string"):
        return not text.endswith("}")
    rest = text[error.pos :]
    begins_a_name = any(one.startswith(rest) for one in ("true", "false", "null", "-", "."))
    return text not in "{[" and (begins_a_name or ("escape" in error.msg and len(rest) < 6))


def parsed(text: str) -> Any:
    """Return the value of a JSON text, read strictly.

    ``NaN``, ``Infinity``, numbers too large for a float, a key given twice in one object, half of a
    surrogate pair and nesting without end are refused.

    Raises:
        json.JSONDecodeError: If the text is not JSON; who knows the layout says where.
        InvalidInput: If it is, but does not mean one thing.
    """
    try:
        content = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except (json.JSONDecodeError, InvalidInput):
        raise
    except RecursionError as error:
        problem = "nested too deeply; expected lists of documents"
        raise InvalidInput("", problem, "flatten it") from error
    except UnicodeEncodeError as error:
        problem = f"a string holds half of a surrogate pair ({error.object[error.start]!r}), which "
        problem += "is not a character; expected whole characters"
        raise InvalidInput("", problem, "an emoji was probably cut in two") from error
    except ValueError as error:
        problem = f"not usable JSON: a number has more than {sys.get_int_max_str_digits():,} digits"
        raise InvalidInput("", problem, "write it as a text if it is an id") from error
    return content


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        problem = f"not usable JSON: the key {twice[:_LONGEST_NAME]!r} is given twice in one object"
        raise InvalidInput("", problem, "keep one of them")
    return content


def _refuse_constant(constant: str) -> Any:
    raise InvalidInput("", f"not usable JSON: {constant} is not a JSON value", "write null instead")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        problem = f"not usable JSON: {text[:_LONGEST_NAME]} is too large for a number"
        raise InvalidInput("", problem, "write null instead")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats, parse_constant=_refuse_constant, parse_float=_finite
)


# What Python writes: data, and nothing that runs

_DEEPEST = 100
_ESCAPE = r"\\(?:[ntr\\'\"abfv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
# Possessive, so that a string without an end is given up after one pass.
_TOKEN = re.compile(
    rf"(?P<space>\s++)|(?P<string>'(?:[^'\\\r\n]++|{_ESCAPE})*+'|\"(?:[^\"\\\r\n]++|{_ESCAPE})*+\")"
    r"|(?P<number>[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?!\w))"
    r"|(?P<name>(?:True|False|None)\b)|(?P<mark>[\[\](){},:])|(?P<other>\w++|\.{3}|.)",
    re.DOTALL,
)
_AS_ARRAY = "save lists, or the table as JSON lines or Parquet"
_PRINTED = {
    "Document": (
        "a LangChain Document was printed into it",
        "save each document's page_content, or its model_dump() as JSON",
    ),
    "array": ("a numpy array was printed into it", _AS_ARRAY),
    "dtype": ("a numpy array was printed into it", _AS_ARRAY),
    "...": ("it was cut short when it was printed", "save the values themselves, as JSON lines"),
}


def literal_in(text: str) -> Any:
    r"""Return the value that a text spells in Python.

    Args:
        text: The text, such as ``"['a', 'b']"``.

    Raises:
        InvalidInput: If it spells anything but data, or is nested more than 100 deep; the problem
            names the character, and what numpy, pandas and LangChain print is recognised.

    >>> literal_in("['a', {'page_content': 'It\\'s b', 'id': 7}]")
    ['a', {'page_content': "It's b", 'id': 7}]
    """
    text = text.strip()
    _check_tokens(text)
    try:
        value = _value_of(ast.parse(text, mode="eval").body)
        # Half of a character is none.
        (json.dumps(value, ensure_ascii=False) if _SURROGATE.search(text) else text).encode("utf-8")
    except SyntaxError as error:
        before = text.splitlines(keepends=True)[: (error.lineno or 1) - 1]
        at = sum(map(len, before)) + (error.offset or 1) - 1
        raise _unreadable(f"{error.msg} at character {at + 1}") from error
    except UnicodeEncodeError as error:
        problem = f"a string holds {error.object[error.start]!a}, which is not a character"
        raise _unreadable(problem) from error
    except ValueError as error:  # a NUL character
        raise _unreadable(str(error)) from error
    return value


def _check_tokens(text: str) -> None:
    """Refuse what is not written in data, before Python's parser sees it."""
    depth, before = 0, ""
    for found in _TOKEN.finditer(text):
        kind, token, at = found.lastgroup, found[0], f"at character {found.start() + 1}"
        if kind == "space":
            continue
        if before and depth == 0:
            raise _unreadable(f"there is more after its end {at}")
        if kind == before == "string":
            problem = f"two strings are side by side without a comma, as numpy prints arrays, {at}"
            raise _unreadable(problem, _AS_ARRAY)
        if kind == "other":
            problem, fix = _PRINTED.get(token, (f"{token[:_LONGEST_NAME]!r} is not expected", ""))
            raise _unreadable(f"{problem} {at}", fix)
        depth += (token in "[({") - (token in "])}") if kind == "mark" else 0
        if depth > _DEEPEST:
            raise _unreadable(f"it is nested more than {_DEEPEST} deep {at}", "flatten it")
        before = str(kind)


def _value_of(node: ast.expr) -> Any:
    at = f"at character {node.col_offset + 1} of line {node.lineno}"
    if isinstance(node, ast.List | ast.Tuple):
        return [_value_of(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        if len({one for one in keys if isinstance(one, str)}) < len(node.keys):
            raise _unreadable(f"the keys of a dict must be different strings {at}")
        return dict(zip(keys, map(_value_of, node.values), strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        number: Any = node.operand.value
        return -number if isinstance(node.op, ast.USub) else +number
    if not isinstance(node, ast.Constant) or node.value in (math.inf, -math.inf):
        raise _unreadable(f"',' or a value is expected {at}")
    return node.value


def _unreadable(problem: str, fix: Fix = "") -> InvalidInput:
    usual = 'write a list of strings, as Python or JSON does: ["…", "…"]'
    return InvalidInput("", f"cannot be read as a list: {problem}", fix or usual)
