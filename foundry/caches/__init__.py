"""Files of JIT caches: which folders there are, what of them a command needs, and how they come back."""
