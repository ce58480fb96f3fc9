"""The examples run, and what they show is so."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest
from pages import ROOT

from wane._jit import DISABLED
from wane.testing import most_failures


@pytest.fixture(scope="module")
def network() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sensor_network", ROOT / "examples" / "sensor_network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_many_paths_carry_what_a_tree_loses(network: ModuleType) -> None:
    """With lossy links: within epsilon of what arrived, which is most of it; a tree loses, and plain sums repeat."""
    seeds, sensors = (1, 60) if DISABLED else (8, 200)
    found = [network.simulate(sensors, 0.35 if DISABLED else 0.2, loss=0.2, seed=seed) for seed in range(seeds)]
    off = [abs(one.insensitive - one.arrived) > network.EPSILON * one.arrived for one in found]
    assert sum(off) <= most_failures(seeds, 0.05)
    for one in found:
        assert one.tree < one.arrived - 0.1
        assert one.by_all_paths > 1.5
        assert abs(one.insensitive - 1) < abs(one.tree - 1)
    arrived, tree = (np.mean([getattr(one, way) for one in found]) for way in ("arrived", "tree"))
    assert arrived > 0.8 > tree + 0.1


def test_without_loss_a_tree_is_exact_and_repeats_still_count_in_plain_sums(network: ModuleType) -> None:
    one = network.simulate(25, 0.45, loss=0.0, seed=3)
    assert one.tree == pytest.approx(1.0)
    assert one.arrived == pytest.approx(1.0)
    assert one.insensitive == pytest.approx(1.0, rel=1e-6)  # so few readings that none was left out
    assert one.by_all_paths > 1.5


def test_rings_are_distances_and_everyone_sends_once(network: ModuleType) -> None:
    laid = network.scatter(80, 0.25, 5)
    order = list(laid.inwards())
    assert sorted(order) == np.flatnonzero(laid.ring > 0).tolist()
    assert [laid.ring[node] for node in order] == sorted(laid.ring[laid.ring > 0], reverse=True)
    assert laid.ring[0] == 0
    for node in order:
        assert len(laid.nearer(node)) > 0
        assert laid.ring[laid.hears[node]][laid.ring[laid.hears[node]] >= 0].min() == laid.ring[node] - 1


def test_it_prints_its_table(
    network: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    small = network.simulate(30, 0.4, loss=0.2, seed=0)
    monkeypatch.setattr(network, "simulate", lambda **_: small)
    network.main()
    assert f"{small.insensitive:.2f}" in capsys.readouterr().out
