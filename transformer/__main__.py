"""``python -m transformer``: see `transformer.cli`."""

import signal
import sys

try:
    from transformer.cli import main
except KeyboardInterrupt:  # Ctrl-C while the modules of the commands are loaded
    sys.exit(128 + signal.SIGINT)

if __name__ == "__main__":
    main()
