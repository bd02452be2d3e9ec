from ._explain_network import CorunnerShare as CorunnerShare
from ._explain_network import Explanation as Explanation
from ._explain_network import Neighbour as Neighbour
from ._fitted_network import FittedFactorization as FittedFactorization
from ._network_method import Factorization as Factorization
