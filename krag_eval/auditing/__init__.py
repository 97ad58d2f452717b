"""Auditing a ground truth: what in it is doubtful before anything is measured."""

#: What this room adds: its commands, and a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.commands": {
        "audit": "krag_eval.auditing.command:audit",
    },
    "krag_eval.pages": {
        "krag_eval.auditing.audit": "krag_eval.auditing.page",
    },
}
