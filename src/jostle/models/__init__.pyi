from ._answers import AnsweredTable as AnsweredTable
from ._fit import fit as fit
from ._model import Model as Model
from ._model import load as load
