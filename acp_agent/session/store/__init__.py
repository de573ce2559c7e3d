"""The journal's file: events kept, listed, read around damage, and taken out of a broken file."""
