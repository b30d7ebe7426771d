"""What is wrong with checklist items: seen from their words, and from the judge's answers."""
