"""Checklist scores as rewards for reinforcement learning: TRL, verl, OpenRLHF and a server."""
