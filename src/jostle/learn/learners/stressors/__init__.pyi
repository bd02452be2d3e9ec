from ._stressor_learner import FittedMixtures as FittedMixtures
from ._stressor_learner import ProbesLearner as ProbesLearner
from ._stressor_method import Probes as Probes
from ._stressor_mixture import mixture_weights as mixture_weights
from ._stressor_tables import fits as fits
