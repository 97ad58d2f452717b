"""How sure a number is: intervals, paired tests, comparisons, gates."""

#: What this room adds: commands, pages, pictures and reports.
HOOKS = {
    "krag_eval.commands": {
        "compare": "krag_eval.comparison.command:compare",
        "gate": "krag_eval.comparison.command:gate",
        "plan": "krag_eval.comparison.command:plan",
    },
    "krag_eval.pages": {
        "krag_eval.comparison.comparison": "krag_eval.comparison.comparison_page",
        "krag_eval.comparison.gates": "krag_eval.comparison.gates_page",
        "krag_eval.comparison.planning": "krag_eval.comparison.planning_page",
        "krag_eval.comparison.slices": "krag_eval.comparison.slices_page",
        "krag_eval.comparison.judged": "krag_eval.comparison.judged_page",
    },
    "krag_eval.pictures": {
        "comparison_forest": "krag_eval.plotting:comparison_forest",
        "planning_curve": "krag_eval.plotting:planning_curve",
        "slice_forest": "krag_eval.plotting:slice_forest",
    },
}
