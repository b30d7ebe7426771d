"""What a run found, in the formats that other tools and people use."""
