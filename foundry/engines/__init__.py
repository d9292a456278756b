"""Adapters for released serving engines: the engine runs unedited, and its graphs come back."""
