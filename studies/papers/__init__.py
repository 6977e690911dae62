"""Studies that make the tables of papers again, from one command and folders of data."""
