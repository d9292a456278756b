"""Every error that Foundry reports, with its exit code and hint. Only `cli/main.py` prints them and exits.

Wording: what failed, in which file, found and expected; the hint names a command to run or a thing to change.
"""

from __future__ import annotations


class FoundryError(Exception):
    """A failure that the user is told about in one message.

    `exit_code` is the process exit status; `hint` is shown on a line of its own; `code` is of format_spec/registry.md.
    """

    exit_code = 125
    code = "failed"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(FoundryError):
    """The command line does not say what to do."""

    exit_code = 2
    code = "usage"


class CommandNotExecutableError(FoundryError):
    """The command exists but cannot be run, or cannot be hooked."""

    exit_code = 126
    code = "command-not-executable"


class CommandNotFoundError(FoundryError):
    """There is no such command."""

    exit_code = 127
    code = "command-not-found"


class ArchiveError(FoundryError):
    """An archive cannot be read: damaged, truncated, or none. `code` is a finding code of format_spec/registry.md."""

    exit_code = 1

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class ArchiveVersionError(ArchiveError):
    """The archive has a newer major version than this reader."""

    exit_code = 4


class ArchiveNotFoundError(FoundryError):
    """No archive at that path, or none in the store for that command."""

    exit_code = 1
    code = "archive-not-found"


class NotInArchiveError(FoundryError):
    """The archive can be read, but has no such process, graph or node."""

    exit_code = 1
    code = "not-in-archive"


class MismatchError(FoundryError):
    """The archive must not be used here: other GPU model, driver, or command. Raised before anything is loaded."""

    exit_code = 5

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class ArchiveExistsError(FoundryError):
    """A file stands at the target and was not to be replaced."""

    code = "archive-exists"


class NoHookedProcessError(FoundryError):
    """The command ended and no process of it used CUDA under the hook, so there is nothing to store."""

    code = "no-hooked-process"


class DiskFullError(FoundryError):
    """Writing needs more bytes than there are. The message names them; what stood at the target still stands."""

    code = "disk-full"


class NotReadyError(FoundryError):
    """The command did not get ready within the time that it was given."""

    code = "not-ready"


class MissingPackageError(FoundryError):
    """What was asked for needs a Python package that is not installed."""

    code = "missing-package"


class NativeLibraryError(FoundryError):
    """The hook or the simulator is not where the installation should have put it."""

    code = "native-library"


class StoreError(FoundryError):
    """There is no folder for archives that is safe to use: none can be written, or others could change it."""

    code = "store"


class CommandFailedError(FoundryError):
    """The command itself ended with a failure; there is more to say than its exit status does."""

    code = "command-failed"

    def __init__(self, message: str, *, exit_code: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class NotProvenError(FoundryError):
    """The archive is written, and what was to be proven of it is not, or not of all graphs."""

    exit_code = 3
    code = "not-proven"


class NotUpdatedError(FoundryError):
    """A run does not fit the archive that it was to be added to, which stays as it is."""

    exit_code = 5
    code = "not-updated"


class NotScrubbedError(FoundryError):
    """The archive is written, and graphs in it kept what may be noise."""

    exit_code = 3
    code = "not-scrubbed"


class NoParityError(FoundryError):
    """Nothing proves that the graphs of a command give what eager passes do: it compared none, or did not end well."""

    exit_code = 3
    code = "no-parity"


class AbandonedError(FoundryError):
    """A signal ended what Foundry itself was doing while no command ran."""

    code = "abandoned"

    def __init__(self, message: str, *, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class SpoolError(FoundryError):
    """A spool folder cannot be read at all (a torn tail is a finding, not this)."""

    code = "spool"
