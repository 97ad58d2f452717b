"""Files that appear whole or not at all, what a killed run resumes from, and a progress bar."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Protocol, TypeAlias

from krag_eval.core import errors
from krag_eval.core.errors import Fix, InvalidInput, InvalidType, MissingPackage, clipped
from krag_eval.core.install import install_line

#: A file by its path, or one that is open by its descriptor.
FileOrDescriptor: TypeAlias = "str | os.PathLike[str] | int"
# How the directory begins in which a file is made before it takes its place.
_TEMPORARY = ".krag-eval-"
# What makes a spreadsheet take a cell for a formula, by its first character (OWASP, "CSV
# injection"; the wide forms are for Japanese and Korean input). A cell also begins where a
# spreadsheet may also split a line at semicolons or tabs.
_BEGINS = r"(?:\A|(?<=[;\t]))"
_FORMULA = "(?='*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_BLANK = r"(?='*[\t\r\n])"
_TO_SHIELD = re.compile(f"{_BEGINS}{_FORMULA}|\\A{_BLANK}")
_SHIELD = re.compile(f"{_BEGINS}'{_FORMULA}|\\A'{_BLANK}")
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; the file takes the place of ``path`` only when complete.

    A symbolic link stays one: the file it points to is replaced. The new file has the permissions
    of the one it replaces.

    Raises:
        FileNotFoundError: If the directory does not exist.
        OSError: If ``path`` is there and not a regular file (a directory, a device), or cannot be
            written; the error names ``path``.
    """
    target = Path(os.path.realpath(path))
    # The path itself: what a pipe is called behind /dev/stdout is no path.
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{path} is not a regular file, so nothing was written; name another.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {target.parent}; create it first.")
    with (
        naming(path),
        tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=target.parent) as folder,
    ):
        temporary = Path(folder) / target.name
        yield temporary
        take_place(temporary, target)


def take_place(new: Path, target: Path) -> None:
    """Move a complete file to where another may be, whose permissions it takes over.

    Its owner and group too, where the operating system allows that.
    """
    with suppress(FileNotFoundError):
        old = os.stat(target)
        with suppress(AttributeError, PermissionError):  # Windows has no owners to change
            os.chown(new, old.st_uid, old.st_gid)
        os.chmod(new, stat.S_IMODE(old.st_mode))
    os.replace(new, target)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error of writing name the file, unless it names another.

    Raises:
        OSError: What was raised within, with ``path`` as its ``filename``.

    >>> with naming("result.json"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: [Errno 28] No space left on device: 'result.json'
    """
    try:
        yield
    except OSError as error:
        named = None if error.filename is None else os.fsdecode(error.filename)
        if error.errno is None or (named is not None and _TEMPORARY not in named):
            raise
        raise OSError(error.errno, error.strerror, os.fsdecode(path)) from error


def check_apart(
    outputs: Mapping[str, FileOrDescriptor],
    inputs: Iterable[FileOrDescriptor],
    *,
    is_read: Callable[[str], bool] = lambda name: True,
    folders: Mapping[str, Path] | None = None,
) -> None:
    """Refuse an output that is read, and two outputs in one file.

    Links, symbolic and hard, and other spellings of a path lead to the same file. Only regular
    files are told apart: a pipe or a terminal may be read and written.

    Args:
        outputs: Argument -> the file it is written to.
        inputs: The files that are read, and the directories whose files are.
        is_read: Whether a file of that name, in such a directory, is one that is read.
        folders: Argument -> the directory that is its own while it is written.

    Raises:
        ValueError: Naming the argument and the file.
    """
    read = list(inputs)
    within = [os.fsdecode(one) for one in read if not isinstance(one, int) and os.path.isdir(one)]
    files = [os.path.join(one, name) for one in within for name in os.listdir(one) if is_read(name)]
    among = {file_identity(one) for one in (*read, *files)} - {None}
    written: set[object] = set()
    for argument, output in outputs.items():
        spelling = None if isinstance(output, int) else _spelling(output)
        identity = file_identity(output)
        if identity in among:
            problem = f": {_shown(output)} is among the files that are read"
            raise InvalidInput(argument, problem, "name another")
        for folder in within:
            if isinstance(output, int) or os.path.dirname(_spelling(output)) != _spelling(folder):
                continue
            if is_read(os.path.basename(os.path.realpath(output))):
                problem = f": {_shown(output)} would be among the files that are read from {folder}"
                raise InvalidInput(argument, problem, "write it somewhere else")
        if {identity, spelling} & written:
            problem = f": {_shown(output)} would be written twice"
            raise InvalidInput(argument, problem, "name a file of its own for each output")
        written |= {identity, spelling} - {None}
    for argument, needed in (folders or {}).items():
        for file in (*read, *outputs.values()):
            if isinstance(file, int) or not Path(_spelling(file)).is_relative_to(_spelling(needed)):
                continue
            problem = f": {_shown(file)} lies in {needed}, which is needed for the progress of the "
            raise InvalidInput(argument, f"{problem}run", "move it away, or name another output")


def file_identity(file: FileOrDescriptor) -> tuple[int, int] | None:
    """Return what is the same for all names of a regular file; ``None`` for anything else."""
    try:
        seen = os.stat(file)
    except (OSError, ValueError):
        return None
    return (seen.st_dev, seen.st_ino) if stat.S_ISREG(seen.st_mode) else None


def _spelling(path: str | os.PathLike[str]) -> str:
    """Return the one spelling of a path; where names differ by case alone, they are one file."""
    real = os.path.realpath(os.fsdecode(path))
    return real.casefold() if sys.platform in ("darwin", "win32") else real


def _shown(file: FileOrDescriptor) -> str:
    """Name a file in a message."""
    if isinstance(file, int):
        return {0: "standard input", 1: "standard output"}.get(file, f"the open file {file}")
    return os.fsdecode(file)


@dataclass(frozen=True)
class Purpose:
    """What a file was made for that a killed run resumes from; its header says so.

    Attributes:
        argument: The argument that names the file.
        format: The name of its format.
        version: The version of its format.
        settings: What its content depends on, as JSON can hold it.
        fix: What to do about a file of another format.
        spoken: Setting -> what to say if it differs, where its values say nothing to a reader.
    """

    argument: str
    format: str
    version: int
    settings: Mapping[str, Any]
    fix: Fix
    spoken: Mapping[str, str] = field(default_factory=dict)

    @property
    def header(self) -> dict[str, Any]:
        """What the file says of itself."""
        return {"format": self.format, "format_version": self.version, **self.settings}

    def check(self, header: Mapping[str, Any], path: str | os.PathLike[str], fix: Fix) -> None:
        """Refuse a file that was made for something else.

        Args:
            header: What the file says of itself.
            path: The file.
            fix: What to do about one of this format, but with other settings.

        Raises:
            InvalidInput: If it is of another format or version, or settings differ; saying which.
        """
        version = header.get("format_version")
        if header.get("format") != self.format:
            problem, fix = f"is not in the format {self.format}, so it is left as it is", self.fix
        elif version != self.version:
            problem = f"is in version {clipped(version)} of the format {self.format}, and this "
            problem, fix = f"{problem}krag_eval reads version {self.version}", self.fix
        elif differing := "; ".join(self.differences(header, self.header, self.spoken)):
            problem = f"was made for something else: {differing}"
        else:
            return
        raise InvalidInput(self.argument, f": {path} {problem}", fix)

    def lock(self, file: IO[Any], path: str | os.PathLike[str]) -> None:
        """Keep the file, or the one that stands for it, from other processes; see :func:`lock`."""
        lock(file, self.argument, path)

    @staticmethod
    def differences(
        made: Mapping[str, Any],
        asked: Mapping[str, Any],
        spoken: Mapping[str, str],
        within: str = "",
    ) -> Iterator[str]:
        """Say where settings differ: the value that was in force, then the one asked for.

        Args:
            made: The settings that were in force.
            asked: The settings asked for.
            spoken: Setting -> what to say if it differs, in place of its values.
            within: The setting that these are part of.

        >>> made, asked = {"k": 1, "of": {"a": 1}}, {"k": 1, "of": {"a": 2, "b": 3}}
        >>> list(Purpose.differences(made, asked, {}))
        ['of.a=1, not 2', 'of.b=None, not 3']
        """
        for name in {**made, **asked}:
            theirs, ours = made.get(name), asked.get(name)
            if theirs == ours:
                continue
            if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
                yield from Purpose.differences(theirs, ours, spoken, f"{name}.")
            else:
                yield spoken.get(name) or f"{within}{name}={clipped(theirs)}, not {clipped(ours)}"


@contextmanager
def changing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let nobody else change a file meanwhile who asks the same; wait for whoever does.

    A file beside it is locked and removed, as the file itself may be replaced. What is there and
    not a regular file is not locked: it is not replaced either.
    """
    target = Path(os.path.realpath(path))
    # As in `replacing`: what a pipe is called behind /dev/fd is no path.
    if not target.parent.is_dir() or (os.path.exists(path) and not os.path.isfile(path)):
        yield
        return
    digest = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    beside = target.with_name(f"{_TEMPORARY}{digest}.lock")
    with naming(path):
        file = _locked(beside)
    try:
        yield
    finally:
        with suppress(OSError):  # Windows removes no file that is open
            beside.unlink()
        file.close()


def _locked(path: Path) -> IO[bytes]:
    """Open and lock a file that whoever had it before may remove."""
    while True:
        file = path.open("ab")
        try:
            lock(file, "path", path, wait=True)
            if file_identity(path) == file_identity(file.fileno()):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def lock(file: IO[Any], argument: str, path: str | os.PathLike[str], *, wait: bool = False) -> None:
    """Lock a file until it is closed; the operating system releases it after a kill.

    Args:
        file: An open file.
        argument: The argument that names it.
        path: What is in use by another run, if the file is locked.
        wait: Whether to wait for another run that has locked it.

    Raises:
        OSError: If another run has locked it, and does not end where it is waited for.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**40)  # a byte that is never written
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            problem = f"{argument}: {path} is in use by another run; wait for it, or name another."
            raise OSError(problem) from error
        # Some network file systems know no locks; a run there is as safe as without.


def shielded(text: str) -> str:
    """Return a text for a cell of a CSV file, with ``'`` before what would begin a formula.

    A formula begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end, or one of the first four
    after a semicolon or a tab. A text that already has ``'`` there gets one more, so that
    :func:`unshielded` returns every text as it was. Plain numbers keep their sign.

    >>> shielded("=1+1"), shielded("-5"), shielded("When?")
    ("'=1+1", '-5', 'When?')
    """
    return text if _PLAIN_NUMBER.fullmatch(text) else _TO_SHIELD.sub("'", text)


def unshielded(text: str) -> str:
    """Return the text that :func:`shielded` made a cell of.

    >>> unshielded("'=1+1"), unshielded("''tis")
    ('=1+1', "''tis")
    """
    return _SHIELD.sub("", text)


_PROGRESS: ContextVar[bool | None] = ContextVar("krag_eval_progress", default=None)


class Bar(Protocol):
    """What is needed of tqdm's bar."""

    def update(self, n: int = 1, /) -> object:
        """Count one more, or ``n``."""

    def close(self) -> object:
        """Leave it as it stands."""


def check_progress(progress: object) -> None:
    """Refuse what is neither ``True``, ``False`` nor ``None``."""
    if not isinstance(progress, bool | None):
        allowed = "True, False, or None for a bar in a terminal and in a notebook"
        raise InvalidType("progress", f"must be {allowed}, got {clipped(progress)}")


def bars(progress: bool | None) -> AbstractContextManager[object]:
    """Let progress bars without an argument of their own follow this one meanwhile.

    >>> with bars(True), bars(False):
    ...     print(bar_of(None, total=1, done=0, title="working"))
    None
    """
    return errors.meanwhile(_PROGRESS, progress)


def bar_of(
    progress: bool | None,
    *,
    total: int,
    done: int,
    title: str,
    unit: str = "query",
) -> Bar | None:
    """Return a bar, or ``None`` where none is wanted.

    Where nothing can be drawn over (nbconvert, papermill, a log) it is one line, at the end.

    Args:
        progress: Whether to show one; ``None``: as :func:`bars` says, or else in a terminal and in
            a notebook.
        total: How many there are.
        done: How many are done already.
        title: What stands before it.
        unit: What they are; of bytes (``"B"``) and others that come in millions, M and the like.
    """
    progress = _PROGRESS.get() if progress is None else progress
    if progress is False:
        return None
    kernel = _kernel() if "ipykernel" in sys.modules else None
    in_terminal = bool(sys.stderr and sys.stderr.isatty())
    if progress is None and not in_terminal and kernel is None:
        return None
    with warnings.catch_warnings():
        # Without ipywidgets it says so, and falls back to the bar of a terminal.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    scale = unit != "query"
    # A kernel can ask for input only where somebody has its notebook open; nbconvert and papermill,
    # which run all cells, deny it.
    if not (in_terminal if kernel is None else getattr(kernel, "_allow_stdin", True)):
        return _OneLine(total, done, title, unit, scale)
    bar: Any = tqdm(
        total=total,
        initial=done,
        desc=title,
        unit=unit,
        unit_scale=scale,
    )
    return bar  # type: ignore[no-any-return]


class _OneLine:
    """A bar that is written once, when it is closed."""

    def __init__(self, total: int, done: int, title: str, unit: str, scale: bool) -> None:
        self._start = perf_counter()
        self._n = done
        self._known = {
            "total": total, "initial": done, "prefix": title, "unit": unit, "unit_scale": scale
        }  # fmt: skip

    def update(self, n: int = 1, /) -> None:
        """Count one more, or ``n``."""
        self._n += n

    def close(self) -> None:
        """Write how far it came, and how long that took."""
        from tqdm import tqdm

        seconds = perf_counter() - self._start
        print(tqdm.format_meter(self._n, elapsed=seconds, **self._known), file=sys.stderr)


def _kernel() -> Any:
    """Return the kernel of the notebook this runs in, if it does."""
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None)


def parquet_for(task: str, argument: str = "") -> Any:
    """Return ``pyarrow.parquet``, which a task needs.

    Raises:
        MissingPackage: If pyarrow is missing, or does not fit the numpy there is.
    """
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingPackage(argument, f"{task} needs pyarrow", install_line("parquet")) from error
    except ImportError as error:
        fix = "install versions of pyarrow and numpy that fit"
        raise MissingPackage(argument, f"{task} needs pyarrow: {error}", fix) from error
    return parquet


def arrow_table(source: Any, argument: str) -> Any:
    """Return what an object streams through Arrow's C interface as a table of pyarrow.

    A stream may be read only once, so the table is what to work with from then on.

    Raises:
        MissingPackage: If pyarrow is missing.
        InvalidType: If the stream is no table, or cannot be read.

    >>> import pyarrow
    >>> arrow_table(pyarrow.table({"a": [1, 2]}).to_reader(), "source").to_pydict()
    {'a': [1, 2]}
    """
    parquet_for(": reading an Arrow stream", argument)
    import pyarrow

    try:
        return pyarrow.table(source)
    except (TypeError, ValueError) as error:
        problem = f"is a {type(source).__name__}, which pyarrow cannot read as a table: {error}"
        raise InvalidType(argument, problem) from error


class ForkLock:
    """A lock that a forked child makes anew, as no thread there would release the parent's."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
