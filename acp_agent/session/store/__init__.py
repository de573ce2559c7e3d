"""Store for the journal file: writing, reading, listing, and recovery from damage."""
