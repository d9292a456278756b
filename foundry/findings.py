"""Findings: what is worth telling about a capture or an archive. The codes are those of `format_spec/registry.md`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How much a finding matters."""

    NOTE = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `where` names the place: a role, a graph, a section; empty if it concerns the whole."""

    code: str
    severity: Severity
    text: str
    where: str = ""

    def as_dict(self) -> dict[str, str]:
        """For machines."""
        return {"code": self.code, "severity": self.severity.name.lower(), "text": self.text, "where": self.where}


# Of the spool
SPOOL_TORN_TAIL = "spool-torn-tail"
SPOOL_BAD_CHECKSUM = "spool-bad-checksum"
SPOOL_BAD_FRAME = "spool-bad-frame"
SPOOL_NO_END = "spool-no-end"
SPOOL_BROKEN = "spool-broken"
SPOOL_NO_DRIVER = "spool-no-driver"
SPOOL_BLOB_MISSING = "spool-blob-missing"

# Of what the program did
LABEL_REPEATED = "label-repeated"
CAPTURE_FAILED = "capture-failed"
EXEC_CHANGED = "exec-changed"
NODE_UNSUPPORTED = "node-unsupported"
KERNEL_UNKNOWN = "kernel-unknown"
PARAMETER_LAYOUT = "parameter-layout"
DEVICE_UNKNOWN = "device-unknown"
CONTEXT_MIXED = "context-mixed"
EVENT_UNKNOWN = "event-unknown"
EVENT_SHARED = "event-shared"
SCRATCH_MEMORY = "scratch-memory"
FOREIGN_MEMORY = "foreign-memory"
DANGLING_POINTER = "dangling-pointer"
DANGLING_WORD = "dangling-word"
HOST_COPY = "host-copy"
ALLOCATION_RACE = "allocation-race"
CONTENTS_UNREAD = "contents-unread"
CONTENTS_TOO_LARGE = "contents-too-large"
CONTENTS_ADDRESSES = "contents-addresses"
CONTENTS_REPLACED = "contents-replaced"
CACHE_LEFT_OUT = "cache-left-out"
CONTENTS_FOREIGN = "contents-foreign"
CONTENTS_LATE = "contents-late"
RANGE_MISSING = "range-missing"
ALLOCATION_OUTSIDE = "allocation-outside"
AMBIGUOUS_PROCESS = "ambiguous-process"

# Of a proof by a second capture
PROOF_NOT_MOVED = "proof-not-moved"
PROOF_MOVED_OTHERWISE = "proof-moved-otherwise"
PROOF_NOISE_KNOWN = "proof-noise-known"
PROOF_UNLIKE = "proof-unlike"

# Of scrubbing
SCRUBBED = "scrubbed"
SCRUB_KEPT = "scrub-kept"

# Of a process about itself
DISARMED = "disarmed"

# Of images
IMAGE_KEPT_WHOLE = "image-kept-whole"

# Of an archive
ARCHIVE_EMPTY = "archive-empty"
ARCHIVE_NOT_ONE = "archive-not-one"
ARCHIVE_TRUNCATED = "archive-truncated"
ARCHIVE_TOO_NEW = "archive-too-new"
ARCHIVE_HEADER = "archive-header"
ARCHIVE_FOOTER = "archive-footer"
ARCHIVE_TABLE = "archive-table"
ARCHIVE_LAYOUT = "archive-layout"
ARCHIVE_LIMIT = "archive-limit"
ARCHIVE_SECTION_UNKNOWN = "archive-section-unknown"
ARCHIVE_SECTION_MISSING = "archive-section-missing"
ARCHIVE_SECTION_SIZE = "archive-section-size"
ARCHIVE_SECTION_DAMAGED = "archive-section-damaged"
ARCHIVE_CONTENT = "archive-content"
ARCHIVE_UNREADABLE = "archive-unreadable"
BLOB_OUTSIDE = "blob-outside"

# Of a verification
VERIFY_KERNEL_MISSING = "verify-kernel-missing"
VERIFY_LAYOUT_DIFFERS = "verify-layout-differs"
VERIFY_IMAGE = "verify-image"
VERIFY_IMAGE_FOREIGN = "verify-image-foreign"
VERIFY_POINTER = "verify-pointer"
VERIFY_REFERENCES = "verify-references"
VERIFY_DANGLING_COUNT = "verify-dangling-count"
VERIFY_SPAN = "verify-span"
VERIFY_CYCLE = "verify-cycle"
VERIFY_NODE_VALUES = "verify-node-values"
VERIFY_MEMBER = "verify-member"
VERIFY_PROOF = "verify-proof"
VERIFY_CONTENTS = "verify-contents"
VERIFY_SUMMARY = "verify-summary"
VERIFY_DEVICE_DRIVER = "verify-device-driver"
VERIFY_DEVICE_NONE = "verify-device-none"
VERIFY_DEVICE_MODEL = "verify-device-model"
VERIFY_DEVICE_RANGE = "verify-device-range"
VERIFY_DEVICE_MEMORY = "verify-device-memory"
VERIFY_DEVICE_IMAGE = "verify-device-image"
VERIFY_DEVICE_KERNEL = "verify-device-kernel"
VERIFY_DEVICE_LAYOUT = "verify-device-layout"
VERIFY_DEVICE_ATTRIBUTE = "verify-device-attribute"
VERIFY_DEVICE_NODE = "verify-device-node"
VERIFY_DEVICE_EDGES = "verify-device-edges"
VERIFY_DEVICE_FLAGS = "verify-device-flags"
VERIFY_DEVICE_LAUNCH = "verify-device-launch"
VERIFY_DEVICE_HANG = "verify-device-hang"
VERIFY_DEVICE_CRASH = "verify-device-crash"
