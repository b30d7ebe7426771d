"""Checks of a judge before a run: accuracy, repeatability, speed and predicted run time."""
