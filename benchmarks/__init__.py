"""Speed and quality, measured. Like our own commands, a benchmark keeps BLAS to one thread, and it
stays out of the store that the environment names."""

from vestige.settings.blas import calm_blas
from vestige.settings.settings import forget_own_store

calm_blas()
forget_own_store()
