"""Archives without a name, found again by their command, and the images made from archives."""
