from ._effects_learner import NameEffects as NameEffects
