"""Convert calls as models write them to calls of our tools."""
