"""Writing files so that each appears complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]


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
