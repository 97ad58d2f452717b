"""Auditing a ground truth: what in it is doubtful before anything is measured."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.auditing.audit": "krag_eval.auditing.page",
    },
}
