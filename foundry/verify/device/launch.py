"""Launches a graph where that is safe: all that it can touch is memory that was mapped and filled here."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from foundry.model import Graph, NodeType, Process
from foundry.model.pointers import Target
from foundry.model.restorable import graph_ends
from foundry.model.tables import Table
from foundry.verify.device.bindings import NOT_READY, Driver, DriverError

_POLL = 0.002


class LaunchError(Exception):
    """A launch failed, or did not end. Nothing more can be done in this process then."""

    def __init__(self, text: str, *, hangs: bool) -> None:
        super().__init__(text)
        self.hangs = hangs


def unsafe(process: Process, number: int, pointers: Table) -> str:
    """Tell why a graph must not be launched here; empty if it may be. `pointers` are those of the whole process."""
    graph: Graph = process.graphs[number]
    end = graph_ends(process)[number]
    part = pointers[pointers["graph"] == number]
    if (part["kind"] != Target.ALLOCATION).any():
        return "words of it lie in memory that belongs to no allocation"
    for body in range(graph.body, end):
        types = process.groups[int(process.bodies[body])].nodes["type"]
        if np.isin(types, (NodeType.WAIT_EVENT, NodeType.EVENT_RECORD)).any():
            return "it records or waits for an event"
    return ""


def launch(driver: Driver, execution: Any, stream: Any, seconds: float) -> None:
    """Launch and wait. Raises LaunchError."""
    try:
        driver.cuGraphLaunch(execution, stream)
    except DriverError as error:
        raise LaunchError(str(error), hangs=False) from None
    until = time.monotonic() + seconds
    while True:
        try:
            driver.cuStreamQuery(stream)
            return
        except DriverError as error:
            if error.name != NOT_READY:
                raise LaunchError(f"its launch ends with {error.name}", hangs=False) from None
        if time.monotonic() > until:
            raise LaunchError(f"its launch did not end within {seconds:g} s", hangs=True)
        time.sleep(_POLL)
