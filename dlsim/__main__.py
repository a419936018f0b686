"""Make ``python -m dlsim`` the command line."""

import sys

from dlsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
