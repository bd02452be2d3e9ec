"""What a stack of rules may be made of."""

from __future__ import annotations

from jostle.rules._bilinear import Bilinear
from jostle.rules._effects import RandomEffects
from jostle.rules._encoded import Encoded
from jostle.rules._level import Level

SimpleRule = Level | RandomEffects | Bilinear | Encoded  # what adds to a value
