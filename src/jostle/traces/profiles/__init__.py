"""What a workload did over time, task by task on an accelerator: profiles and their files."""
