"""Builds the graphs of an archive on a GPU through cuda-python, and compares what the driver then tells of them.

Independent of the hook: nothing here is shared with its C++. `parent` starts a fresh process for each process of an
archive, and ends it where it hangs; `__main__` is what runs there.
"""
