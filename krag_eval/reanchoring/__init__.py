"""Re-anchoring: the labels of a ground truth in an index that was cut anew."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.reanchoring.reanchor": "krag_eval.reanchoring.page",
    },
}
