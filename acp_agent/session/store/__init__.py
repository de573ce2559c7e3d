"""The journal's file: writing, reading and listing sessions, and recovery from damage."""
