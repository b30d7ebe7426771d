"""report: one page that shows it all."""
