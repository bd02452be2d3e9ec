from ._confidence import DEFAULT_CONFIDENCE as DEFAULT_CONFIDENCE
from .accelerator import Accelerator as Accelerator
from .alignment import Alignment as Alignment
from .bag import Bag as Bag
from .bounds import Bounds as Bounds
from .bridge import Bridge as Bridge
from .bridge import forecast as forecast
from .errors import JostleError as JostleError
from .factorization import Factorization as Factorization
from .methods import Data as Data
from .methods import read as read
from .models import Model as Model
from .models import fit as fit
from .models import load as load
from .placement import Fleet as Fleet
from .placement import Request as Request
from .placement import Requests as Requests
from .placement import place as place
from .placement import place_devices as place_devices
from .runs import Colocations as Colocations
from .runs import Dataset as Dataset
from .runs import Runs as Runs
from .runs import StoredRuns as StoredRuns
from .runs import read_runs as read_runs
from .service import Client as Client
from .slowdown import Slowdown as Slowdown

__version__: str
