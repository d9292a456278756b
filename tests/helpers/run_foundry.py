"""The installed command line, whatever the working folder: `python -m foundry` would meet a source checkout there."""

from foundry.cli.main import main

if __name__ == "__main__":
    main()
