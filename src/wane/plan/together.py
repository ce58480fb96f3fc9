"""Several queries over one source as few plans: those that group alike are one plan, and share its states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from wane.grouped.hops import EPOCH
from wane.grouped.query import Answer, Plan, State
from wane.grouped.states import bounds_name


class Together:
    """Plans that group the same rows alike, as one.

    Attributes:
        plan: The one.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        states: dict[State, int] = {}
        answers: list[Answer] = []
        self._names: list[dict[str, str]] = []
        for number, plan in enumerate(plans):
            places = [states.setdefault(state, len(states)) for state in plan.states]
            named = {f"{number}.{answer.name}": answer.name for answer in plan.answers}
            answers += [
                replace(answer, name=name, state=places[answer.state])
                for name, answer in zip(named, plan.answers, strict=True)
            ]
            self._names.append(named)
        self.plan = replace(plans[0], states=tuple(states), answers=tuple(answers))
        self._keyed = [*([EPOCH] if self.plan.every else []), *self.plan.keys]

    def split(self, answers: pa.Table) -> list[pa.Table]:
        """The answers of each plan, with the names that it gave them."""
        found = []
        for named in self._names:
            names = {}
            for long, short in named.items():
                names[long] = short
                if bounds_name(long) in answers.schema.names:
                    names[bounds_name(long)] = bounds_name(short)
            one = answers.select([*self._keyed, *names])
            found.append(one.rename_columns([*self._keyed, *names.values()]))
        return found


def together(plans: Sequence[Plan]) -> list[tuple[list[int], Together]]:
    """The plans that remain, each with the places of those that are in it."""
    alike: dict[Plan, list[int]] = {}
    for place, plan in enumerate(plans):
        alike.setdefault(replace(plan, states=(), answers=()), []).append(place)
    return [(places, Together([plans[place] for place in places])) for places in alike.values()]
