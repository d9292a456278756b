"""The `foundry` command."""
