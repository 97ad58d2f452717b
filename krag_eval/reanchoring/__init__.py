"""Re-anchoring: the labels of a ground truth in an index that was cut anew."""

#: What this room adds: its commands, and a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.commands": {
        "reanchor": "krag_eval.reanchoring.command:reanchor",
    },
    "krag_eval.pages": {
        "krag_eval.reanchoring.reanchor": "krag_eval.reanchoring.page",
    },
}
