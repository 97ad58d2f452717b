"""The room ``core/data``."""
