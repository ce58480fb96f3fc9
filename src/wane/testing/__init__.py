"""What wane tests itself with, for summaries of your own: laws, streams that look for trouble, and exact oracles.

A summary with a `SPEC` is tested against every law that applies to it like this (hypothesis must be installed)::

    import pytest
    from wane.testing import applicable, cases

    @pytest.mark.parametrize("case", cases(SPEC), ids=str)
    @pytest.mark.parametrize("law", applicable(SPEC), ids=lambda law: law.name)
    def test_law(law, case):
        if law.applies(case):
            law.verify(case)
"""

from wane.testing.cases import EQUAL, Case, cases, sample_decays
from wane.testing.laws import CAPABILITIES, LAWS, Law, applicable, law
from wane.testing.oracles import ORACLES, Choice, Exact, Row, rows
from wane.testing.streams import SPAN, START, Stream, edges, shapes, streams
from wane.testing.tails import ALARM, chi_square, most_failures

__all__ = [
    "ALARM",
    "CAPABILITIES",
    "EQUAL",
    "LAWS",
    "ORACLES",
    "SPAN",
    "START",
    "Case",
    "Choice",
    "Exact",
    "Law",
    "Row",
    "Stream",
    "applicable",
    "cases",
    "chi_square",
    "edges",
    "law",
    "most_failures",
    "rows",
    "sample_decays",
    "shapes",
    "streams",
]
