"""The adapter for the continuous batching of transformers."""
