"""From similarities to numbers: relevance, metrics, averages."""
