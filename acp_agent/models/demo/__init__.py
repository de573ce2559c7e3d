"""The offline model `demo/demo`."""
