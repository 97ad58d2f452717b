"""The job itself: documents in, matched once, numbers and evidence out, told as a table."""
