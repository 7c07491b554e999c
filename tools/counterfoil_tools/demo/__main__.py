"""`python -m counterfoil_tools.demo`: the demo without the command line of the library."""

import sys

from counterfoil_tools.demo import main

sys.exit(main(sys.argv[1:]))
