"""Diagnosis: where what is missing was lost, in index, splitter, ranking or search."""

#: What this room adds: its commands, and a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.commands": {
        "diagnose": "krag_eval.diagnosis.command:diagnose",
    },
    "krag_eval.pages": {
        "krag_eval.diagnosis.diagnosis": "krag_eval.diagnosis.page",
    },
}
