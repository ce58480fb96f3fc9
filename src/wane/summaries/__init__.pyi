from .extrema import Extrema as Extrema
from .moments import Moments as Moments
