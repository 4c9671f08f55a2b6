"""The command ``dendrer``."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from dendrer import _native


def main() -> NoReturn:
    """Runs the program, and exits with its code."""
    # Python only notes an interrupt, and the program would go on.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    name = os.path.basename(sys.argv[0])
    sys.exit(_native.program([name, *sys.argv[1:]]))
