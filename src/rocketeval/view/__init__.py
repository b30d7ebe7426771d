"""The server of `rocketeval view`: read-only pages of running and finished runs."""
