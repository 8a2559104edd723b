"""Atari's Tempest (1981) as a Gymnasium environment, its teacher and a learning agent.

Importing the package registers ``Tempest-v0``; it imports neither torch nor the compiled rules.
"""

from importlib.metadata import version

from tempest_agent.envs.registration import register

__version__ = version("tempest-agent")

register()
