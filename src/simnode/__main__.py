"""`python -m simnode` is `simnode`."""

import sys

from simnode.cli import main

sys.exit(main())
