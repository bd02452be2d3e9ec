from ._canonical import CanonicalRuns as CanonicalRuns
from ._expert import Expert as Expert
from ._expert import FittedExpert as FittedExpert
from ._expert import expert_named as expert_named
from ._expert import expert_names as expert_names
from ._fitted import FittedEnsemble as FittedEnsemble
from ._method import Ensemble as Ensemble
