"""Histories: saved results from run to run, and a new one held to the last."""

#: What this room adds: its command, its page and its picture.
HOOKS = {
    "krag_eval.commands": {"history": "krag_eval.history.command:history"},
    "krag_eval.pages": {"krag_eval.history.history": "krag_eval.history.page"},
    "krag_eval.pictures": {"history_curves": "krag_eval.history.picture:history_curves"},
}
