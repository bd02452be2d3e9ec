"""Progress, plug-ins, options, documents and arrays on disk. Imports nothing of Jostle but its errors."""
