"""Sweeps: many settings of a retriever asked the same questions, and compared."""

#: What this room adds: commands, pages, pictures and reports.
HOOKS = {
    "krag_eval.commands": {
        "sweep": "krag_eval.sweeping.command:sweep",
    },
    "krag_eval.pages": {
        "krag_eval.sweeping.sweep": "krag_eval.sweeping.page",
    },
    "krag_eval.reports": {
        "krag_eval.sweeping.sweep.Sweep": "krag_eval.sweeping.report:REPORT",
    },
    "krag_eval.pictures": {
        "pareto_points": "krag_eval.sweeping.picture:pareto_points",
    },
}
