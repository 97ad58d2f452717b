"""Other tools' files: BEIR, TREC, AutoRAG, LangSmith, traces, harnesses."""

#: What this room adds: records, folders and judgements that are recognised.
HOOKS = {
    "krag_eval.shapes": {"formats": "krag_eval.formats.shapes:SHAPES"},
    "krag_eval.folders": {"formats": "krag_eval.formats.shapes:FOLDERS"},
    "krag_eval.judgements": {"formats": "krag_eval.formats.shapes:JUDGEMENTS"},
}
