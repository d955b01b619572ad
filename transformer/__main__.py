"""``python -m transformer``: see `transformer.cli`."""

import signal
import sys

if __name__ == "__main__":
    try:
        from transformer.cli import main

        main()
    except KeyboardInterrupt:  # Ctrl-C while the modules of the commands are loaded, or a second one at the end
        sys.exit(128 + signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has ended: Ctrl-C finds nothing to stop
