from ._bag_method import Bag as Bag
from ._bag_settings import GROUPS as GROUPS
from ._explain_bag import BagExplanation as BagExplanation
from ._explain_bag import Step as Step
from ._fitted_bag import FittedBag as FittedBag
