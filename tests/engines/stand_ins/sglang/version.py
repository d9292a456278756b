import os

__version__ = os.environ.get("STAND_IN_VERSION", "0.5.17")
