"""Two workers that are started at the same time; each has a graph of its own under the same name.

    workers_program.py METHOD FIRST

METHOD is one of `multiprocessing`, or `subprocess`, or `alike`, which is that without arguments of their own. The one
called FIRST uses the driver first.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from typing import Any

WORKERS = {"Worker-0": 11, "Worker-1": 22}


def check(result: Any) -> Any:
    error, *values = result
    assert error == 0, error
    return values[0] if len(values) == 1 else values


def work(name: str, value: int, begun: Callable[[], object]) -> str:
    """Use the driver, tell so, and give what the graph gave."""
    from cuda.bindings import driver

    from foundry.graphs import GraphSet, commit

    check(driver.cuInit(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))))
    stream = check(driver.cuStreamCreate(1))
    buffer = int(check(driver.cuMemAlloc(64)))
    begun()

    def capture() -> Any:
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        check(driver.cuStreamBeginCapture(stream, mode))
        check(driver.cuMemsetD32Async(buffer, value, 4, stream))
        executable = check(driver.cuGraphInstantiate(check(driver.cuStreamEndCapture(stream)), 0))
        return lambda handle: check(driver.cuGraphLaunch(executable, handle))

    graph = GraphSet("workers").capture_or_restore("only", capture=capture, inputs={"buffer": buffer})
    graph.launch(int(stream))
    check(driver.cuStreamSynchronize(stream))
    data = bytearray(4)
    check(driver.cuMemcpyDtoH(data, buffer, 4))
    commit()
    how = "restored" if graph.restored else "captured"
    return f"{name} {how} {int.from_bytes(data, 'little')}"


def named(value: int, go: Any, gone: Any, answers: Any) -> None:
    """Be a worker of `multiprocessing`."""
    assert go.wait(60)
    answers.put(work(multiprocessing.current_process().name, value, gone.set))


def unnamed(*told: str) -> None:
    """Be a worker that is told its name and value by arguments, or by its input."""
    line = sys.stdin.readline().split()
    name, value = told or line
    print(work(name, int(value), lambda: print("begun", flush=True)), flush=True)
    sys.stdin.readline()


def by_multiprocessing(method: str, order: list[str]) -> list[str]:
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    events = {name: context.Event() for name in WORKERS}
    gone = {name: context.Event() for name in WORKERS}
    workers = [
        context.Process(target=named, args=(value, events[name], gone[name], answers), name=name)
        for name, value in WORKERS.items()
    ]
    for worker in workers:
        worker.start()
    for name in order:
        events[name].set()
        assert gone[name].wait(60)
    found = [answers.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    return found


def by_subprocess(order: list[str], *, alike: bool) -> list[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = {
        name: subprocess.Popen(  # type: ignore[call-overload]
            [sys.executable, __file__, "worker", *(() if alike else (name, str(value)))], **pipes
        )
        for name, value in WORKERS.items()
    }
    for name in order:
        workers[name].stdin.write(f"{name} {WORKERS[name]}\n")
        workers[name].stdin.flush()
        assert workers[name].stdout.readline() == "begun\n"
    found = [worker.stdout.readline().strip() for worker in workers.values()]
    for worker in workers.values():
        worker.stdin.close()
        worker.wait(60)
    return found


def main() -> None:
    method, *rest = sys.argv[1:]
    if method == "worker":
        unnamed(*rest)
        return
    order = sorted(WORKERS, key=lambda name: name != rest[0])
    if method in ("subprocess", "alike"):
        found = by_subprocess(order, alike=method == "alike")
    else:
        found = by_multiprocessing(method, order)
    print(*sorted(found), sep="\n")


if __name__ == "__main__":
    main()
