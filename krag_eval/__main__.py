"""``python -m krag_eval``: the same as the ``krag-eval`` command, which starts here too."""

from __future__ import annotations

import sys
import traceback

__all__ = ["main"]


def main() -> None:
    """Run the command; what cannot even be loaded ends with 2, as every crash does."""
    try:
        from krag_eval.cli import main as command

        command(prog_name="krag-eval")
    except Exception:
        try:
            traceback.print_exc()
        finally:
            sys.exit(2)


if __name__ == "__main__":
    main()
