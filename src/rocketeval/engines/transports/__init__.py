"""Request forms: the API calls by which servers return label probabilities."""
