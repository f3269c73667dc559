"""Speed and quality, measured. Like our own commands, a benchmark keeps BLAS to one thread."""

from vestige.settings import calm_blas

calm_blas()
