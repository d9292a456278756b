"""`python -m foundry`: the same as the `foundry` command."""

from __future__ import annotations

from foundry.cli.main import main

if __name__ == "__main__":
    main()
