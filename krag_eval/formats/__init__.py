"""The room ``formats``."""
