"""Verbs about a model: a file each, whose name is the verb's."""
