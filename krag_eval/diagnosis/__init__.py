"""The room ``diagnosis``."""
