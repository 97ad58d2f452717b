"""The room ``sweeping``."""
