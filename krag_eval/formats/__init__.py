"""Other tools' files: BEIR, TREC, AutoRAG, LangSmith, traces, harnesses."""
