"""Where Counterfoil meets other libraries: one file each, an extra each, nothing imported unless used."""
