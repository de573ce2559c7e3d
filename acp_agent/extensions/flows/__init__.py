"""Flow skills: a flowchart in Mermaid or D2, each of whose nodes is a step for the model."""
