"""Language models: drivers, the catalog, the choice among them."""
