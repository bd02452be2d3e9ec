"""For all tests: no time limit on a single example, which a busy machine would break."""

from hypothesis import settings

settings.register_profile("jostle", deadline=None)
settings.load_profile("jostle")
