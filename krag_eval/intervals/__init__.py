"""How sure an average is: confidence intervals, and the budget that reaches a recall."""

#: What this room adds: how a budget that reaches a recall is shown.
HOOKS = {"krag_eval.pages": {"krag_eval.intervals.intervals": "krag_eval.intervals.page"}}
