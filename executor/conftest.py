"""Doctests of a module whose framework is not here cannot run: Strands has an environment of its own, see .ci/run."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("strands") else ["counterfoil/adapters/strands.py"]
