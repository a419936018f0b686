"""The command ``dlsim``, also as ``python -m dlsim``."""

import sys


def main() -> int:
    """Run the command line; an interrupt during the import ends with a message, too."""
    try:
        from dlsim import cli

        return cli.main()
    except KeyboardInterrupt:
        print("\ndlsim: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
