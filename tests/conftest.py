"""For all tests: no time limit on a single example, which a busy machine would break."""

from hypothesis import settings

settings.register_profile("jostle", deadline=None)
settings.load_profile("jostle")

# Programs that are compiled in the tests are kept beside pytest's own cache, for its workers and the next run.
os.environ.setdefault(
    "JOSTLE_PROGRAMS", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "programs")
)
