"""Diagnosis: where what is missing was lost, in index, splitter, ranking or search."""

#: What this room adds: commands, pages, pictures and reports.
HOOKS = {
    "krag_eval.commands": {
        "diagnose": "krag_eval.diagnosis.command:diagnose",
    },
    "krag_eval.pages": {
        "krag_eval.diagnosis.diagnosis": "krag_eval.diagnosis.page",
    },
    "krag_eval.pictures": {
        "diagnosis_waterfall": "krag_eval.plotting:diagnosis_waterfall",
    },
}
