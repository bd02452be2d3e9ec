from ._fitted import FittedSlowdown as FittedSlowdown
from ._method import Slowdown as Slowdown
