from ._explain import BagExplanation as BagExplanation
from ._explain import Step as Step
from ._fitted import FittedBag as FittedBag
from ._method import Bag as Bag
from ._settings import GROUPS as GROUPS
