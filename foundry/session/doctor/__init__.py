"""What this machine has for a capture or a restore, and what is in the way. Never raises; makes no CUDA context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from foundry.session import host
from foundry.session.doctor import driver, install, machine, self_test, storage
from foundry.session.doctor.check import BAD, GOOD, GPU, NOTE, SIMULATOR, Check, Surroundings, bad, note

__all__ = [
    "BAD",
    "GOOD",
    "GPU",
    "NOTE",
    "SIMULATOR",
    "Check",
    "Surroundings",
    "examine",
    "look",
    "obstacles",
    "sound",
    "test",
    "verdict",
]

PROBE_SECONDS = 10.0
_Looks = Callable[[Surroundings], Iterator[Check]]
LOOKS: tuple[_Looks, ...] = (
    machine.system,
    machine.c_library,
    machine.processor,
    machine.container,
    machine.limits,
    machine.kernel_memory,
    machine.tracing,
    machine.address_space,
    driver.driver_library,
    driver.kernel_module,
    driver.driver,
    driver.gpus,
    install.hook,
    install.simulator,
    install.import_name,
    install.python,
    install.toolkit,
    install.preload,
    storage.store,
    storage.temporary,
    storage.left_over,
)


def look(environment: Mapping[str, str]) -> Surroundings:
    """Ask the driver, within a time limit."""
    return Surroundings(environment, host.ask(environment, simulated=False, seconds=PROBE_SECONDS))


def examine(here: Surroundings) -> list[Check]:
    """Look at everything but the self test."""
    return [check for looks in LOOKS for check in _safely(looks, here)]


def test(environment: Mapping[str, str], checks: Sequence[Check], *, device: bool = False) -> Check:
    """Run the self test, unless one of the checks says that it cannot work."""
    where = "GPU 0" if device else "the simulator"
    missing = obstacles(checks, GPU if device else SIMULATOR)
    if missing:
        return note(self_test.TITLE, f"on {where}: not run, because of: {missing[0].what}", missing[0].hint)
    try:
        return self_test.run(environment, device=device)
    except Exception as error:
        return _fault(self_test.TITLE, error)


def _safely(looks: _Looks, here: Surroundings) -> list[Check]:
    try:
        return list(looks(here))
    except Exception as error:
        return [_fault(looks.__name__.replace("_", " "), error)]


def _fault(what: str, error: Exception) -> Check:
    hint = "this is a fault of foundry, please report it"
    return bad(what, f"cannot be looked at: {type(error).__name__}: {error}", hint, ())


def obstacles(checks: Sequence[Check], on: str) -> list[Check]:
    """List what would stop a capture or restore on a GPU or on the simulator."""
    return [check for check in checks if on in check.stops]


def verdict(checks: Sequence[Check]) -> list[str]:
    """Say what can be done here, and what stops the rest."""
    lines = []
    for on, where in ((GPU, "on a GPU"), (SIMULATOR, "with --sim")):
        found = obstacles(checks, on)
        reasons = ", ".join(dict.fromkeys(check.what for check in found))
        lines.append(f"capture and restore {where}: " + (f"no, because of: {reasons}" if found else "yes"))
    return lines


def sound(checks: Sequence[Check]) -> bool:
    """Whether nothing is wrong."""
    return all(check.state != BAD for check in checks)
