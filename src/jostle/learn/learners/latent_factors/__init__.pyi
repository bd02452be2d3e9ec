from ._slowdown_method import Slowdown as Slowdown
