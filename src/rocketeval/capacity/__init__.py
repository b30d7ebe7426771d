"""Capacity planning: replicas, time and cost of a run on a cluster."""
