from ._accelerator_method import Accelerator as Accelerator
from ._fitted_accelerator import FittedAccelerator as FittedAccelerator
