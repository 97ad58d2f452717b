"""Writing files so that each appears complete or not at all, and by one run at a time.

And texts into CSV files so that no spreadsheet runs them.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

__all__ = ["lock", "replacing", "shielded", "unshielded"]

# What makes a spreadsheet take a cell for a formula, by its first character (OWASP, "CSV
# injection"; the wide forms are for Japanese and Korean input). A cell also begins where a
# spreadsheet that was told so, or guesses, parts a line by semicolons or tabs.
_BEGINS = r"(?:\A|(?<=[;\t]))"
_FORMULA = "(?='*[=+\\-@\uff1d\uff0b\uff0d\uff20])"
_BLANK = r"(?='*[\t\r\n])"
_TO_SHIELD = re.compile(f"{_BEGINS}{_FORMULA}|\\A{_BLANK}")
_SHIELD = re.compile(f"{_BEGINS}'{_FORMULA}|\\A'{_BLANK}")
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; the file takes the place of ``path`` only when complete.

    A symbolic link stays one: the file it points to is replaced.

    Raises:
        FileNotFoundError: If the directory does not exist.
        OSError: If ``path`` is there and not a regular file (a directory, a device).
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a regular file, so nothing was written; name another.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {target.parent}; create it first.")
    with tempfile.TemporaryDirectory(prefix=".krag-eval-", dir=target.parent) as folder:
        temporary = Path(folder) / target.name
        yield temporary
        os.replace(temporary, target)


def lock(file: IO[Any], refusal: str) -> None:
    """Lock a file until it is closed; the operating system lets go of it after a kill.

    Args:
        file: An open file.
        refusal: What to say if somebody else has locked it.

    Raises:
        OSError: If somebody else has.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**40)  # a byte that is never written
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            raise OSError(refusal) from error
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
