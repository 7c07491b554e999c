"""The demo: a scripted agent pays and books on real servers while answers get lost, and the providers count.

Owns the public entrance; the command line finds `run_demo` by its entry point.
"""

from counterfoil_tools.demo.director import main, run_demo

__all__ = ["main", "run_demo"]
