"""The only place with clocks, sleep, threads and tools: it carries out the steps that the flow asks for."""
