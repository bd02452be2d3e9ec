from ._shipped import SHARED_CORE_CPU as SHARED_CORE_CPU
from ._shipped import VISION_CPU as VISION_CPU
from ._shipped import sample as sample
from ._shipped import sample_description as sample_description
from ._shipped import shared_core_bags as shared_core_bags
from ._shipped import slurm_log as slurm_log
from ._shipped import vision_bags as vision_bags
