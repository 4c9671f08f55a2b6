"""``python -m dendrer`` is the command ``dendrer``."""

import sys

from dendrer._program import main

sys.argv[0] = "dendrer"
main()
