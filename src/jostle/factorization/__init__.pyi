from ._explain import CorunnerShare as CorunnerShare
from ._explain import Explanation as Explanation
from ._explain import Neighbour as Neighbour
from ._fitted import FittedFactorization as FittedFactorization
from ._method import Factorization as Factorization
