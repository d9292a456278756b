"""A capture or a restore from start to end."""
