"""``python -m tempest_agent``: the command line, also for ``torchrun -m tempest_agent``."""

from tempest_agent.cli import main

if __name__ == "__main__":
    main()
