"""The room ``core``."""
