"""Plans: what is asked, turned into states and answers, and checked against the columns there are."""

from wane.grouped.query import Answer, Every, Plan, State
from wane.plan.build import build, check
from wane.plan.explain import explain
from wane.plan.together import Together, together

__all__ = ["Answer", "Every", "Plan", "State", "Together", "build", "check", "explain", "together"]
