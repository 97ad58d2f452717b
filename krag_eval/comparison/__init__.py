"""How sure a number is: intervals, paired tests, comparisons, gates."""

#: What this room adds: a page for each module whose classes are shown.
HOOKS = {
    "krag_eval.pages": {
        "krag_eval.comparison.comparison": "krag_eval.comparison.comparison_page",
        "krag_eval.comparison.gates": "krag_eval.comparison.gates_page",
        "krag_eval.comparison.history": "krag_eval.comparison.history_page",
        "krag_eval.comparison.planning": "krag_eval.comparison.planning_page",
        "krag_eval.comparison.slices": "krag_eval.comparison.slices_page",
        "krag_eval.comparison.judged": "krag_eval.comparison.judged_page",
    },
}
