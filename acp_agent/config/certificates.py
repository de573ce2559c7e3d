"""CA certificates for HTTP clients, with support for SSL_CERT_FILE and SSL_CERT_DIR.

SSL_CERT_FILE or, if that is not set, SSL_CERT_DIR replaces the system's certificates.
REQUESTS_CA_BUNDLE belongs to another library and has no effect here.
"""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

from acp_agent.errors import ConfigError
from acp_agent.platform.descriptor_limit import describe_os_error

FILE_VARIABLE = "SSL_CERT_FILE"
FOLDER_VARIABLE = "SSL_CERT_DIR"

_PLATFORM: str = sys.platform
# Where distributions store certificates, for a Python built to look elsewhere.
_BUNDLES = (
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)


def certificate_problem() -> str | None:
    """Return the problem with the certificates that a variable names, or None.

    Reads the file: call it in a thread.
    """
    if path := os.environ.get(FILE_VARIABLE):
        try:
            ssl.create_default_context(cafile=path)
        except ssl.SSLError:
            return (
                f"{FILE_VARIABLE} names {path}, which has no certificates in PEM form; "
                "correct the variable or unset it"
            )
        except OSError as error:
            return (
                f"{FILE_VARIABLE} names {path}, which cannot be read ({describe_os_error(error)}); "
                "correct the variable or unset it"
            )
        return None
    folders = os.environ.get(FOLDER_VARIABLE, "")
    if folders and not any(Path(folder).is_dir() for folder in folders.split(os.pathsep)):
        return (
            f"{FOLDER_VARIABLE} names {folders}, which is not a folder; "
            "correct the variable or unset it"
        )
    return None


def tls_verification(url: str) -> ssl.SSLContext | bool:
    """Return the `verify` argument of an HTTP client for one address.

    http:// needs no certificates, so invalid ones are ignored there.

    Raises:
        ConfigError: a variable names unusable certificates, and the address is https://.
    """
    problem = certificate_problem()
    if problem is None:
        return True
    if url.lower().startswith("http://"):
        return empty_tls_context()
    raise ConfigError(problem)


def tls_context() -> ssl.SSLContext:
    """Return a context with the certificates that a variable names, or else the system's. Blocks.

    Raises:
        ConfigError: a variable names unusable certificates.
    """
    problem = certificate_problem()
    if problem is not None:
        raise ConfigError(problem)
    variables = {FILE_VARIABLE, FOLDER_VARIABLE} & os.environ.keys()
    if _PLATFORM in {"darwin", "win32"} and not variables:
        import truststore  # noqa: PLC0415 - reads the system's store, which is not a file there

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not variables and not paths.cafile and not _has_entries(paths.capath):
        for bundle in filter(os.path.isfile, _BUNDLES):
            context.load_verify_locations(bundle)
            break
    return context


def _has_entries(folder: str | None) -> bool:
    try:
        return folder is not None and any(os.scandir(folder))
    except OSError:
        return False


def empty_tls_context() -> ssl.SSLContext:
    """Return a context that trusts no certificate."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
