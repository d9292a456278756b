"""Parity of a graph with its function, on the stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from foundry.capi import Mode

MODES = [Mode.OFF, Mode.CAPTURE]


class Host:
    """A value on the host, which a capture freezes."""

    scale = 3


class Setting:
    """A graph of x * scale + position, which adds to a table."""

    def __init__(self, world: Any) -> None:
        self.world, torch = world, world.torch
        self.host = Host()
        self.x, self.table = torch.empty(4), torch.empty(4)
        self.position = torch.empty(1, dtype=torch.int64)
        for tensor, value in ((self.x, 5), (self.table, 1), (self.position, 2)):
            tensor.fill_(value)
        self.graphs = world.graph_set(watched=[self.table])
        self.graph = self.graphs.capture_or_restore("step", self.step, (self.x, self.position))
        self.before = dict(torch.cells)

    def step(self, x: Any, position: Any) -> Any:
        cells, out, scale = self.world.torch.cells, self.world.torch.empty(4), self.host.scale
        places = [tensor.data_ptr() for tensor in (x, position, self.table, out)]

        def kernel() -> None:
            value, at, table = (cells[place] for place in places[:3])
            cells[places[3]] = value * scale + at
            cells[places[2]] = table + 1

        self.world.torch.run(kernel)
        return {"out": out, "scale": 1}

    def untouched(self) -> bool:
        cells = self.world.torch.cells
        named = (self.x, self.table, self.position)
        return all(cells[tensor.data_ptr()] == self.before[tensor.data_ptr()] for tensor in named)


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def setting(start: Any, request: pytest.FixtureRequest) -> Setting:
    return Setting(start(request.param))


def test_a_graph_equals_its_function_on_other_inputs(setting: Setting) -> None:
    found = setting.graphs.parity("step", setting.step, rounds=3)
    assert (found.equal, found.difference, found.rounds, found.compared) == (True, None, 3, 3 * 64)
    assert found.varied == ("input[0]", "watched[0]")
    assert setting.untouched()
    assert setting.world.hook.scratch_depth == 0


def test_a_value_that_the_key_leaves_out_is_found(setting: Setting) -> None:
    setting.host.scale = 4
    found = setting.graphs.parity("step", setting.step)
    assert not found.equal
    assert found.difference.startswith("output['out']: ")
    assert "in the graph" in found.difference
    assert (found.reproducible, found.rounds) == (True, 1)
    assert setting.untouched()


def test_a_function_that_leaves_an_input_out_is_found(setting: Setting) -> None:
    def forgets(x: Any, position: Any) -> Any:
        """Takes the input's value of the capture, as a stale copy would."""
        out = setting.world.torch.empty(4)
        out.fill_(5 * 3 + 2)
        table = setting.world.torch.cells[setting.table.data_ptr()]
        setting.table.fill_(table + 1)
        return {"out": out, "scale": 1}

    assert not setting.graphs.parity("step", forgets).equal


def test_a_function_that_writes_elsewhere_is_found(setting: Setting) -> None:
    def twice(x: Any, position: Any) -> Any:
        setting.step(x, position)
        return setting.step(x, position)

    found = setting.graphs.parity("step", twice)
    assert found.difference == "watched[0]: other bytes stand there after the replay"


def test_given_inputs_are_used(setting: Setting) -> None:
    torch = setting.world.torch
    given = []
    for value in (8, 9):
        x, position = torch.empty(4), torch.empty(1, dtype=torch.int64)
        x.fill_(value)
        position.fill_(value)
        given.append((x, position))
    found = setting.graphs.parity("step", setting.step, given)
    assert (found.equal, found.rounds) == (True, 2)
    assert "input[1]" in found.varied
    assert setting.untouched()


@pytest.mark.parametrize("given", [[()], [(1, 2, 3)]])
def test_inputs_that_do_not_fit_are_told(setting: Setting, given: Any) -> None:
    found = setting.graphs.parity("step", setting.step, given)
    assert not found.equal
    assert "nests otherwise" in found.difference
    assert setting.untouched()


def test_outputs_of_another_form_are_found(setting: Setting) -> None:
    def other(x: Any, position: Any) -> Any:
        return {**setting.step(x, position), "scale": 2}

    assert setting.graphs.parity("step", other).difference == "output['scale']: 1 in the graph, 2 from the function"

    def less(x: Any, position: Any) -> Any:
        return {"out": setting.step(x, position)["out"]}

    found = setting.graphs.parity("step", less)
    assert found.difference == "output['scale']: int in the graph, nothing from the function"


def test_a_function_that_fails_is_told_and_leaves_no_trace(setting: Setting) -> None:
    def fails(x: Any, position: Any) -> Any:
        raise KeyError("cache")

    found = setting.graphs.parity("step", fails)
    assert (found.equal, found.difference) == (False, "not compared: KeyError: 'cache'")
    assert setting.untouched()


def test_a_function_that_differs_from_itself_is_told(setting: Setting) -> None:
    runs: list[int] = []

    def unsteady(x: Any, position: Any) -> Any:
        runs.append(1)
        out = setting.step(x, position)
        out["out"].fill_(len(runs))
        return out

    found = setting.graphs.parity("step", unsteady)
    assert (found.equal, found.reproducible) == (False, False)


def test_a_graph_that_is_not_there_is_told(setting: Setting) -> None:
    assert setting.graphs.parity("none", setting.step).difference.startswith("the set has no such graph")
    assert setting.graphs.parity("step", setting.step, rounds=0).equal is False


def test_nothing_that_varies_proves_nothing(start: Any) -> None:
    world = start()
    x = world.torch.empty(1, dtype=world.torch.int64)
    x.fill_(1)

    def step(x: Any) -> Any:
        out = world.torch.empty(1)
        cells, places = world.torch.cells, (x.data_ptr(), out.data_ptr())
        world.torch.run(lambda: cells.update({places[1]: cells[places[0]]}))
        return out

    graphs = world.graph_set()
    graph = graphs.capture_or_restore(1, step, (x,))
    found = graphs.parity(1, step)
    assert (found.equal, found.difference) == (False, "no input took another value: give `inputs`")
    assert graph.key == "1"


def test_random_numbers_are_compared_from_the_same_place(start: Any) -> None:
    world = start(Mode.CAPTURE)
    x = world.torch.empty(4)
    x.fill_(1)
    generator = world.torch.cuda.default_generators[0]
    generator.manual_seed(5)
    graphs = world.graph_set()
    graph = graphs.capture_or_restore(1, lambda x: world.torch.empty(1).uniform_(), (x,))
    stands = generator.get_offset()
    found = graphs.parity(1, lambda x: world.torch.empty(1).uniform_())
    assert found.equal, found.difference
    assert (generator.initial_seed(), generator.get_offset()) == (5, stands)
    twice = graphs.parity(1, lambda x: world.torch.empty(1).uniform_().uniform_())
    assert not twice.equal
    assert graph.reason is None


def test_no_workspace_of_the_function_stays(setting: Setting) -> None:
    def multiplies(x: Any, position: Any) -> Any:
        setting.world.torch.matmul()
        return setting.step(x, position)

    assert setting.graphs.parity("step", multiplies).equal
    assert setting.world.torch.workspace is None
