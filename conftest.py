"""What is not collected where its framework is not installed: Strands has an environment of its own, see .ci/run."""

from importlib.util import find_spec

collect_ignore = (
    []
    if find_spec("strands")
    else ["executor/counterfoil/adapters/strands.py", "tests/adapters/conformance/drivers/strands.py"]
)
