"""The room ``auditing``."""
