"""Who takes part in the benchmarks: one module for each side, each run in a process of its own by `benchmarks.child`.

A module of a peer imports the peer inside its functions, because it is not installed where the tests are.
"""
