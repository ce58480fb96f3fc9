"""Arrays that grow with the number of groups."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def grown(array: NDArray[Number], size: int) -> NDArray[Number]:
    """The array, with zeros appended where it has fewer than `size` places; at least doubled."""
    if len(array) >= size:
        return array
    more = np.zeros(max(size, 2 * len(array)), array.dtype)
    more[: len(array)] = array
    return more
