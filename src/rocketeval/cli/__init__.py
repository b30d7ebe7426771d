"""The command line: parses arguments, calls the pipeline, prints results."""
