"""The adapter for vLLM."""
