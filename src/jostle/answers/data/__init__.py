"""Reports about data: datasets, what came into them, campaigns and audits of them."""
