"""Commands that measure or record on this machine: measure, trace and opcodes."""
