"""``python -m likewise.cli``, the same as ``likewise``."""

import sys

from likewise._safe_path import leave_current_folder

if __name__ == "__main__":
    leave_current_folder()

from likewise.cli import main

if __name__ == "__main__":
    sys.argv[0] = "likewise"  # as it is typed, for the record of a run
    raise SystemExit(main())
