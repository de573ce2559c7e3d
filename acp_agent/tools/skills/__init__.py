"""Tools for skills: one that runs a skill for another skill, and one that writes a skill."""
