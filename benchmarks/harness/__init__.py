"""How the harness takes a model's slightly wrong edits, calls and answers.

A corpus of cases, each with the intended result, is run through a real agent and a scripted model,
over each provider's API: `python -m benchmarks harness [--api API] [--only PATTERN] [--failures]`.
"""
