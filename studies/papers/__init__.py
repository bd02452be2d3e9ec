"""The published systems: what each paper prints, remade by today's code, and the default beside it."""
