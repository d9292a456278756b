"""What is in a kernel image, by its bytes alone."""
