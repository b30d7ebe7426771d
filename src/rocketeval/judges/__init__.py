"""Several judges of one benchmark: how far they agree, and one ranking from all of them."""
