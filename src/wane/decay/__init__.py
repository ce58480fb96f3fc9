"""Decay functions: how weight depends on time.

A decay is a frozen value with a text form. *Forward* ones (``none``, ``landmark``, ``poly(2)``,
``polynomial(1, 0, 2)``, ``exp(half_life=5m)``) fix an item's weight when it arrives and cost no more than no decay.
*Backward* ones (``window(5m)``, ``backward poly(1.5)``, ``superexp(half_life=5m)``, ``subpoly``) depend on age.
``none`` and ``exp`` are both.
"""

from wane.decay.backward_decays import BackwardPoly, SlidingWindow, SubPoly, SuperExponential
from wane.decay.base import Backward, Decay, Forward, Frame
from wane.decay.custom import CustomBackward, CustomForward, backward, forward
from wane.decay.forward_decays import Exponential, Landmark, NoDecay, Poly, Polynomial
from wane.decay.pinned import Pinned, pinned
from wane.decay.text import parse

__all__ = [
    "Backward",
    "BackwardPoly",
    "CustomBackward",
    "CustomForward",
    "Decay",
    "Exponential",
    "Forward",
    "Frame",
    "Landmark",
    "NoDecay",
    "Pinned",
    "Poly",
    "Polynomial",
    "SlidingWindow",
    "SubPoly",
    "SuperExponential",
    "backward",
    "forward",
    "parse",
    "pinned",
]
