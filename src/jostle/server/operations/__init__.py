"""What is asked of a service about itself: an operation a function, with its question and its answer."""

from jostle.server.operations import _observed_runs as _observed_runs
from jostle.server.operations import _placement_changes as _placement_changes
from jostle.server.operations import _service_status as _service_status
from jostle.server.operations._http_operation import OPERATIONS as OPERATIONS
from jostle.server.operations._http_operation import Operation as Operation
from jostle.server.operations._http_operation import Question as Question
from jostle.server.operations._http_operation import StateAnswer as StateAnswer
