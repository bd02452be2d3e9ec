from ._answers import AnsweredTable as AnsweredTable
from ._fit import fit as fit
from ._model import Model as Model
from ._model import load as load
from ._plots import ModelPlots as ModelPlots
from ._why import CorunnerCost as CorunnerCost
from ._why import Measured as Measured
from ._why import Why as Why
