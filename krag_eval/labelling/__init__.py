"""Labels of people: a page to label on, its files, and how far two people agree."""

#: What this room adds: commands, pages, pictures and reports.
HOOKS = {
    "krag_eval.commands": {
        "calibrate": "krag_eval.labelling.command:calibrate",
        "label": "krag_eval.labelling.command:label",
        "agree": "krag_eval.labelling.command:agree",
    },
    "krag_eval.pages": {
        "krag_eval.labelling.labels": "krag_eval.labelling.page",
    },
    "krag_eval.reports": {
        "krag_eval.labelling.labels.ToLabel": "krag_eval.labelling.labelling_page:REPORT",
    },
}
