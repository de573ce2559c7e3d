"""Assertions with which a client logs in by its private key (RFC 7523, `private_key_jwt`)."""

from __future__ import annotations

import time
from uuid import uuid4

from mcp.client.auth import OAuthFlowError

PRIVATE_KEY_METHOD = "private_key_jwt"
_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_LIFETIME = 300  # seconds


def is_private_key(secret: str) -> bool:
    """Return whether a client's secret is a private key in PEM format, which is never sent."""
    return secret.lstrip().startswith("-----BEGIN ") and "PRIVATE KEY-----" in secret


def assertion_fields(client_id: str, key: str, issuer: str) -> dict[str, str]:
    """Return the fields of a token request that prove that the client has its key.

    Args:
        key: the private key, in PEM format.
        issuer: the authorization server, which alone can use the assertion.

    Raises:
        OAuthFlowError: the key cannot be read, or is of a kind without an algorithm.
    """
    import jwt  # noqa: PLC0415 - takes 30 ms
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - likewise

    try:
        private_key = load_pem_private_key(key.strip().encode(), password=None)
    except (TypeError, ValueError) as error:
        raise OAuthFlowError(f"the private key of the client cannot be read ({error})") from None
    now = int(time.time())
    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "iat": now,
        "exp": now + _LIFETIME,
        "jti": str(uuid4()),
    }
    for algorithm in ("RS256", "ES256", "ES384", "ES512", "EdDSA"):
        try:
            assertion = jwt.encode(claims, private_key, algorithm=algorithm)  # type: ignore[arg-type]  # refuses others
        except (TypeError, jwt.InvalidKeyError):
            continue
        return {"client_assertion_type": _TYPE, "client_assertion": assertion}
    raise OAuthFlowError("the private key of the client is neither RSA, nor EC, nor Ed25519")
