"""Re-anchoring: the labels of a ground truth in an index that was cut anew."""

#: What this room adds: commands, pages, pictures and reports.
HOOKS = {
    "krag_eval.commands": {
        "reanchor": "krag_eval.reanchoring.command:reanchor",
    },
    "krag_eval.pages": {
        "krag_eval.reanchoring.reanchor": "krag_eval.reanchoring.page",
    },
    "krag_eval.reports": {
        "krag_eval.reanchoring.reanchor.Reanchored": "krag_eval.reanchoring.page:REPORT",
    },
}
