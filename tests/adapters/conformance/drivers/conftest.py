"""A driver whose framework is not here cannot be imported: Strands has an environment of its own, see .ci/run."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("strands") else ["strands.py"]
