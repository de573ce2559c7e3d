"""Flow skills: flowcharts in Mermaid or D2 in which each node is a step for the model."""
