from ._fit import fit_probes as fit_probes
from ._fitted import FittedProbes as FittedProbes
from ._method import Probes as Probes
from ._mixture import mixture_weights as mixture_weights
