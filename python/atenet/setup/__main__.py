"""`python -m atenet.setup`."""

from atenet.setup.main import main

main()
