from ._product_learner import ProductLearner as ProductLearner
from ._slowdown_method import Slowdown as Slowdown
