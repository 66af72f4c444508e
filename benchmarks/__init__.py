"""The measures of this project: `make bench`, or `make bench ONLY=P-21` for one."""
