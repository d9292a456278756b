"""May this archive be used here: what can be known without a driver."""
