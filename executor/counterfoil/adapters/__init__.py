"""Where Counterfoil meets other libraries: one file each, an extra each, nothing imported unless used."""

from counterfoil.adapters.guarded import guard

__all__ = ["guard"]
