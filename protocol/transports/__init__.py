"""How messages travel: today lines on standard input and output."""
