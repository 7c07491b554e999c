"""Ready tools for Counterfoil, and the demo.

Owns nothing itself. Each module is imported by name (`counterfoil_tools.payments`), so that nobody pays for an SDK of a
provider that is not used. The library never imports this package.
"""
