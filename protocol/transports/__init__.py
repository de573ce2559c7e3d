"""Ways to carry one JSON-RPC message after another."""
