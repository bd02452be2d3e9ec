from ._accelerator_method import Accelerator as Accelerator
from ._delays import simulated_seconds as simulated_seconds
from ._fitted_accelerator import FittedAccelerator as FittedAccelerator
