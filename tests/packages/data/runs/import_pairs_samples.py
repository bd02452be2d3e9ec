"""Samples and helpers for tests of import pairs, and for others that need them."""

from __future__ import annotations

HEAD = "dataset,platform,target,target_cfg,corunner,corunner_cfg,metric,unit,solo,corun,slowdown\n"


PAIRS = HEAD + (
    "one,gpu,a,,b,,throughput,steps/s,4,2,2\n"
    "one,gpu,b,,a,,throughput,steps/s,8,2,4\n"
    "one,gpu,a,,a,,throughput,steps/s,4,0,\n"
    "two,gpu,a,small,b;a,x,time,ms,500,1500,3\n"
)
