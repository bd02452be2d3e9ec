"""How a member of the model is trained: rows, the compiled steps, quantile heads, and how long."""
