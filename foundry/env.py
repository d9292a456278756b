"""Names of the environment variables, in one place."""

from __future__ import annotations

MODE = "FOUNDRY_MODE"
SPOOL = "FOUNDRY_SPOOL"
IMAGE = "FOUNDRY_IMAGE"
BUILDING = "FOUNDRY_BUILDING"
"""Folder in which a restored command finds its image where that is still being made."""
ALLOW = "FOUNDRY_ALLOW"
"""Codes of differences that a restore lets pass, separated by commas."""
QUIET = "FOUNDRY_QUIET"
STATUS = "FOUNDRY_STATUS"
RESPOOL = "FOUNDRY_RESPOOL"
"""Set to 1 to have a restore tell its spool every graph, kernel and image that it rebuilt, as a capture does, for those
who want to compare the two. It takes time."""
TRIM = "FOUNDRY_TRIM"
"""Set to 1 to have a restore take the kernels of its graphs from images that hold no others: loading takes as long as
there are kernels in an image."""
UPDATE = "FOUNDRY_UPDATE"
"""Set to 1, with RESPOOL, to have a restored program store the graphs that it captures: an archive gets them, too."""
WITNESS = "FOUNDRY_WITNESS"
"""Set to 1 to have a capture make a witness of each graph: what it gives for a stated state of memory."""
CHECK = "FOUNDRY_CHECK"
"""Set to 1 to have a restore replay each graph against its witness before it is used; to CHECK_ONLY, to have it
give up those, too, that cannot be compared."""
CHECK_ONLY = "only"
PARITY = "FOUNDRY_PARITY"
"""File to which a program that compares its graphs with eager passes appends reports: what `foundry parity` sets."""
PATIENCE = "FOUNDRY_PATIENCE"
"""Seconds that a program's thread waits for a driver call of the restore in another thread, before the restore is given
up. A minute if not set."""
AVOID = "FOUNDRY_AVOID"
"""Where the hook reserves no range for a device: hexadecimal addresses with commas between them."""
CONTENTS = "FOUNDRY_CONTENTS"
"""Set to 0 to have a capture keep nothing of what the program puts into memory that it allocates while it captures."""
HOLD = "FOUNDRY_HOLD"
"""How the reasons begin for which a process that gives its restore up waits for its parent to end it; or `any`."""
COMMAND = "FOUNDRY_COMMAND"
"""Which process is the command itself: `self:PID`, the one that foundry becomes, or `child:PID` of foundry."""
PROCESS = "FOUNDRY_PROCESS"
"""`PID:NAME`: what `multiprocessing` calls the process with that number, which tells it so itself."""
EARLY = "FOUNDRY_EARLY"
"""`ROLE:DEVICE,DEVICE`: the command, if it has that role, makes driver and contexts ready before it asks for them."""
ADAPTERS = "FOUNDRY_ADAPTERS"
"""Set to 0 to have Python processes of a hooked command load no adapters for engines and torch; 1 is as not set."""
ADAPTERS_OFF = "0"
OPENED = "FOUNDRY_OPENED"
"""A file to which Python processes of a captured command write the names of the files that they open."""
PYTHON_PATH = "PYTHONPATH"
PRELOAD = "LD_PRELOAD"
LIBRARY_PATH = "LD_LIBRARY_PATH"

SIMULATOR_VERSION = "FOUNDRY_SIM_VERSION"
SIMULATOR_FAIL = "FOUNDRY_SIM_FAIL"
SIMULATOR_SEED = "FOUNDRY_SIM_SEED"
SIMULATOR_GPU = "FOUNDRY_SIM_GPU"
SIMULATOR_MEMORY = "FOUNDRY_SIM_MEMORY"
SIMULATOR_MASK = "FOUNDRY_SIM_MASK"

LIBRARY_DIRECTORY = "FOUNDRY_LIBRARY_DIR"
"""Where the native libraries are, for a development build; else beside the package."""

TRACEBACK = "FOUNDRY_TRACEBACK"
"""Set to have a fault of foundry itself shown with its place in the source."""

OF_A_SESSION = (
    MODE, SPOOL, IMAGE, BUILDING, ALLOW, QUIET, STATUS, WITNESS, CHECK, AVOID, HOLD, COMMAND, EARLY, OPENED, UPDATE,
    PROCESS,
)  # fmt: skip
"""What a hooked process is told; never passed on to a command that runs without the hook."""

RANK_VARIABLES = ("RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
"""Whose value names a process's role, first match wins."""

ALLOWED_VARIABLES = (
    *RANK_VARIABLES,
    "WORLD_SIZE",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_ORDER",
    "CUBLAS_WORKSPACE_CONFIG",
    "PYTORCH_CUDA_ALLOC_CONF",
)
"""The only variables of the program that an archive may hold."""
