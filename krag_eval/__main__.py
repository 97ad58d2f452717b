"""``python -m krag_eval``: the same as the ``krag-eval`` command."""

from krag_eval.cli import main

if __name__ == "__main__":
    main(prog_name="krag-eval")
