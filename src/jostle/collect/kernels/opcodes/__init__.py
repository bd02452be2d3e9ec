"""WebAssembly modules as bytes: their instructions, and modules rewritten to count them."""
