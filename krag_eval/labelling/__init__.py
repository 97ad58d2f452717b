"""The room ``labelling``."""
