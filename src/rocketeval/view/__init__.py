"""`rocketeval view`: runs in a browser, read-only, while they go and when they are finished."""
