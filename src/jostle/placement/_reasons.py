"""Why a node is ruled out, in words and as codes."""

from __future__ import annotations

# Why a node is ruled out: a few constant words, the first that applies.
REASONS = {
    "ok": "everybody would keep the limit",
    "bad_request": "the request could not be read",
    "bad_node": "the row of the node could not be read",
    "unknown_workload": "the model has never met the workload",
    "unknown_platform": "the model does not answer on the platform",
    "unknown_tenant": "the model has never met a workload that is there",
    "not_modelled": "a model of runs says nothing of queries at a rate, or of the longest run",
    "pinned_elsewhere": "the request is pinned to another node",
    "not_allowed": "neither the node nor its platform is among those allowed",
    "labels": "the node lacks a label that the request needs",
    "no_slot": "all slots are taken",
    "no_memory": "too little memory is free",
    "apart": "a tenant and the request must be apart",
    "no_ground": "no bound is valid for this ground",
    "newcomer_late": "the request would not keep its own limit",
    "tenant_late": "a tenant would not keep its limit",
    "crowded_out": "others have the places that it could have",
    "no_node": "the fleet has no node",
}
CODES = {name: code for code, name in enumerate(REASONS)}
