"""Matching: how similar each predicted document is to each ground-truth item."""
