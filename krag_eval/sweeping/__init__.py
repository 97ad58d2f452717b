"""Sweeps: many settings of a retriever asked the same questions, and compared."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.sweeping.sweep": "krag_eval.sweeping.page",
    },
}
