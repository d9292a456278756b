"""What differs between two captures."""
