"""Diagnosis: where what is missing was lost, in index, splitter, ranking or search."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.diagnosis.diagnosis": "krag_eval.diagnosis.page",
    },
}
