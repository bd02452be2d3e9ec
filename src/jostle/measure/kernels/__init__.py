"""The kernels: C sources beside the WebAssembly modules built from them (see `build.py`)."""
