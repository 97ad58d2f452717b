"""The room ``lab``."""
