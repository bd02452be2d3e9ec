"""Commands that say what may run where: safe."""
