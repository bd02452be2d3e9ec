"""How many batch jobs fit beside a service on one accelerator, and which sets of services and jobs do."""
