"""Starting a command under the hook: environment, process groups, signals, exit codes."""
