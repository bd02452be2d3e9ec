"""What is measured: workloads with the kernels that come with Jostle, and programs of phases."""
