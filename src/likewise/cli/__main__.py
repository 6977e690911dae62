"""``python -m likewise.cli``, the same as ``likewise``."""

import os
import sys

# python -m puts the current folder first: files there, such as those of another person's run, must not replace modules
if __name__ == "__main__" and not sys.flags.safe_path:
    homes = [os.path.dirname(os.path.abspath(each)) for each in sys.modules["likewise"].__path__]
    if os.path.abspath(sys.path[0]) not in homes:
        del sys.path[0]

from likewise.cli import main

if __name__ == "__main__":
    sys.argv[0] = "likewise"  # as it is typed, for the record of a run
    raise SystemExit(main())
