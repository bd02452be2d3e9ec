"""Verbs about a fleet as a model sees it: a file each, whose name is the verb's."""
