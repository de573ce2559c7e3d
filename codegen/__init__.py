"""Programs that write the generated files of this repository; `make schemas` runs them all."""
