"""Reading and writing tables of questions: one pipeline from a row to a query."""
