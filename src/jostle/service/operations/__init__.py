"""What is asked of a service about itself: an operation a function, with its question and its answer."""

from jostle.service.operations import _about as _about
from jostle.service.operations import _placements as _placements
from jostle.service.operations import _runs as _runs
from jostle.service.operations._operation import OPERATIONS as OPERATIONS
from jostle.service.operations._operation import Operation as Operation
from jostle.service.operations._operation import Question as Question
from jostle.service.operations._operation import StateAnswer as StateAnswer
