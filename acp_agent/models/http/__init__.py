"""HTTP requests to model providers (docs/decisions/provider-http.md)."""
