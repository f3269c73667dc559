"""`python -m vestige` is `vestige`."""

from vestige.app import main

main()
