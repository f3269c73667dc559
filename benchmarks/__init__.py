"""Speed and quality, measured. Like our own commands, a benchmark keeps BLAS to one thread, and it
stays out of the store that the environment names."""

from vestige.settings.libraries import prepare_libraries
from vestige.settings.settings import forget_own_store

prepare_libraries()
forget_own_store()
