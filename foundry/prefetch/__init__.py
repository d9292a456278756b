"""Which files a start reads, seen from outside at a capture, and read ahead beside a restored one."""
