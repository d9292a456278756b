"""The seams of transformers 5.17.0 that the adapter touches, after the released sources (Apache-2.0)."""

import os

__version__ = os.environ.get("STAND_IN_VERSION", "5.17.0")
