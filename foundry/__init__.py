"""Foundry: capture CUDA graphs once, start from them in seconds."""
