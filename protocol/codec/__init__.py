"""JSON to typed values and back, as tolerant as the protocol's schema asks for and no more."""
