"""The room ``reanchoring``."""
