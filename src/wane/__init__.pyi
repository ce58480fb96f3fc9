from wane import decay as decay
from wane import errors as errors
from wane import expr as expr
from wane import fn as fn
from wane import gsql as gsql
from wane import hashing as hashing
from wane import local as local
from wane import monoids as monoids
from wane import registry as registry
from wane import serde as serde
from wane import sources as sources
from wane import states as states
from wane import testing as testing
from wane import times as times
from wane import windows as windows
from wane.monoids.base import monoid as monoid
from wane.summaries import *
from wane.summaries.base import from_bytes as from_bytes
from wane.windows import *
from wane.windows._roll import roll as roll

__version__: str
