"""From YAML to validated settings; every error names file, line and key."""
