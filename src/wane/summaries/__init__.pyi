from .count_min import CountMinHierarchy as CountMinHierarchy
from .distinct import Distinct as Distinct
from .extrema import Extrema as Extrema
from .greenwald_khanna import GreenwaldKhanna as GreenwaldKhanna
from .moments import Moments as Moments
from .q_digest import QDigest as QDigest
from .space_saving import SpaceSaving as SpaceSaving
