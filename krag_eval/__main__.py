"""``python -m krag_eval``: the same as the ``krag-eval`` command, which starts here too."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress

_INTERRUPTED = 130
# Within two seconds of Ctrl-C the process has ended, whatever its other threads are at.
_SECONDS_TO_END = 1.5


def main() -> None:
    """Run the command; what cannot even be loaded ends with 2, as every crash does."""
    _end_when_interrupted()
    try:
        from krag_eval.cli import main as command

        try:
            command(prog_name="krag-eval")
        except SystemExit as ended:
            timeouts = sys.modules.get("krag_eval.asking.timeouts")
            # It may have threads of its own, for which Python would wait.
            if timeouts is not None and timeouts.any_lost():
                _leave(ended.code)
            raise
    except Exception:
        try:
            traceback.print_exc()
        finally:
            sys.exit(2)


def _end_when_interrupted() -> None:
    """See to it that the second Ctrl-C ends the process at once, and the first one soon.

    The interpreter writes the number of each signal to the socket, even while the main thread is in
    C and raises no KeyboardInterrupt.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader, writer), daemon=True).start()


def _watch(reader: socket.socket, writer: socket.socket) -> None:
    for seconds in (None, _SECONDS_TO_END):
        reader.settimeout(seconds)
        with suppress(TimeoutError):
            while reader.recv(1) != bytes([signal.SIGINT]):
                pass
    os._exit(_INTERRUPTED)


def _leave(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 2)


if __name__ == "__main__":
    main()
