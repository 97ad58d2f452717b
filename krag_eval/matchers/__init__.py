"""Matchers that need a library or a model: ROUGE, edit distance, embeddings, a judge."""

#: What this room adds: the names that ``matcher=`` accepts.
HOOKS = {
    "krag_eval.matchers": {
        "fuzzy": "krag_eval.matchers.fuzzy:FuzzyMatcher",
        "rouge1": "krag_eval.matchers.rouge:rouge1",
        "rouge2": "krag_eval.matchers.rouge:rouge2",
        "rougeL": "krag_eval.matchers.rouge:rouge_l",
    },
}
