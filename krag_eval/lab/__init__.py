"""Estimates from little: few labels of people, values before labels, score cutoffs, calibration."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.lab.few_labels": "krag_eval.lab.few_labels_page",
        "krag_eval.lab.predicting": "krag_eval.lab.predicting_page",
        "krag_eval.lab.score_cutoffs": "krag_eval.lab.score_cutoffs_page",
        "krag_eval.lab.calibration": "krag_eval.lab.calibration_page",
    },
}
