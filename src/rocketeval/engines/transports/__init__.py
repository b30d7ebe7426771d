"""Request forms: the ways in which servers can be asked for yes/no probabilities."""
