"""Retrievers: asking them the questions of a data set, and watching them inside a chain.

This room knows LangChain's runnables, retrievers and callbacks. It must not know metrics: what it
gathers goes to the evaluator. LangChain is loaded when a retriever is asked or recorded.
"""
