"""Language models: drivers of providers, the catalog of models, and the selection of a model."""
