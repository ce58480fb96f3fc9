from .distinct import Distinct as Distinct
from .exponential_histogram import ExponentialHistogram as ExponentialHistogram
from .extrema import Extrema as Extrema
from .moments import Moments as Moments
from .q_digest import QDigest as QDigest
from .range_sketch import RangeSketch as RangeSketch
from .space_saving import SpaceSaving as SpaceSaving
from .wave import Wave as Wave
