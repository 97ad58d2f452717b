"""Labels of people: a page to label on, its files, and how far two people agree."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.labelling.labels": "krag_eval.labelling.page",
    },
}
