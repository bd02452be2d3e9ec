from ._expert import FittedMixtures as FittedMixtures
from ._expert import ProbesExpert as ProbesExpert
from ._method import Probes as Probes
from ._mixture import mixture_weights as mixture_weights
from ._tables import fits as fits
