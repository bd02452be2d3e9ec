from ._accelerator_method import Accelerator as Accelerator
from ._fitted_accelerator import FittedAccelerator as FittedAccelerator
from ._fitted_accelerator import way_to_share as way_to_share
