"""The room ``matchers``."""
