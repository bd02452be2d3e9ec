from ._method import Slowdown as Slowdown
