"""Exact instruction counts of workloads: WebAssembly's opcodes and a native program's mnemonics."""
