"""Python imports this at its start in commands that foundry hooks: it puts this folder on their PYTHONPATH.

Whatever Python finds it, it must be able to read it, and must not notice it: the folder leaves `sys.path` again, and
the sitecustomize that would have run without it runs.
"""

import os
import sys

if os.environ.get("FOUNDRY_MODE") and sys.version_info >= (3, 10):
    try:
        import _foundry_start

        _foundry_start.begin()
    except Exception as error:
        sys.stderr.write("foundry: no adapters in this process: %s: %s\n" % (type(error).__name__, error))  # noqa: UP031

_folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
sys.path[:] = [entry for entry in sys.path if entry != _folder]
_own = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if getattr(error, "name", "sitecustomize") != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", _own)
