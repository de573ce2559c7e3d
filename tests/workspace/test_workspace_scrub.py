"""Credentials are taken out of what tools give, and nothing else is."""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import gzip
import io
import json
import lzma
import random
import secrets
import string
import subprocess
import textwrap
import time
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import quote, urlencode

import pytest

from acp_agent.workspace.scrub import incomplete_tail, scrub
from benchmarks.scrub import cases, missed

ALNUM = string.ascii_letters + string.digits


def random_key(length: int, alphabet: str = ALNUM) -> str:
    # Made anew in each run, so that no test file holds anything that looks like a real key.
    return "".join(secrets.choice(alphabet) for _ in range(length))


def test_a_known_value_is_replaced_at_every_position() -> None:
    value = random_key(20)
    assert scrub(f"a={value}&b={value}x", [value]) == "a=[secret]&b=[secret]x"


def test_of_two_known_values_the_longer_one_is_replaced_completely() -> None:
    short = random_key(10)
    longer = short + random_key(10)
    assert scrub(f"{longer} {short}", [short, longer]) == "[secret] [secret]"


def test_a_short_or_empty_value_does_not_spoil_the_text() -> None:
    assert scrub("a banana", ["", "a", "banana"]) == "a banana"


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("KEY=", "sk-ant-" + "api03-" + random_key(90), "\n"),
        ("key: ", "sk-proj-" + random_key(60), " "),
        ("'", "sk-" + random_key(48), "'"),
        ("", "AIza" + random_key(35), "\n"),
        ("", random_key(32, "0123456789abcdef") + "." + random_key(16), "\n"),
        ("token ", "ghp_" + random_key(36), "\n"),
        ("", "github_pat_" + random_key(82), ""),
        ("", "glpat-" + random_key(20), ""),
        ("", "AKIA" + random_key(16, string.ascii_uppercase), " "),
        ("aws_secret_access_key = ", random_key(40), "\n"),
        ("", "xoxb-" + random_key(30, string.digits), ""),
        ("", "sk_live_" + random_key(24), ""),
        ("", "npm_" + random_key(36), "\n"),
        ("", "hf_" + random_key(34), "\n"),
        ("Authorization: Bearer ", random_key(30), "\r\n"),
        ('"authorization": "Basic ', random_key(24), '"'),
        ("postgres://admin:", random_key(15) + "7", "@db.example.com/x"),
        ("", f"eyJ{random_key(20)}.eyJ{random_key(30)}.{random_key(40)}", ""),
    ],
    ids=[
        "anthropic",
        "openai-project",
        "openai",
        "google",
        "zhipu",
        "github-classic",
        "github",
        "gitlab",
        "aws-id",
        "aws-secret",
        "slack",
        "stripe",
        "npm",
        "hugging-face",
        "bearer",
        "basic",
        "url",
        "jwt",
    ],
)
def test_a_key_of_a_well_known_form_is_replaced_and_its_surroundings_stay(
    before: str, key: str, after: str
) -> None:
    assert scrub(f"x {before}{key}{after}") == f"x {before}[secret]{after}"


@pytest.mark.parametrize("prefix", ["", "{}\t", "{}:", "  {}→"])
def test_a_private_key_is_replaced_with_or_without_line_numbers(prefix: str) -> None:
    body = [random_key(64) for _ in range(5)]
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "rest"]
    text = "\n".join(prefix.format(number) + line for number, line in enumerate(lines, 1))
    scrubbed = scrub(text)
    assert not any(line in scrubbed for line in body)
    assert scrubbed.endswith("rest")


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "the sk-learn package, task-based, risk-averse",
        "postgres://user:password@localhost/test and http://localhost:8080/a@b",
        'grep -n "-----BEGIN PRIVATE KEY-----" is what finds a private key in a text',
        "Authorization: Bearer $TOKEN",
        "curl -H 'Authorization: Bearer <your token>'",
        "git clone https://github.com/example/project.git",
        "id = 0190b6a0-7e3c-7c3e-9e5b-0d8d0a0a0a0a",
        "def password(self) -> str: return self._password",
        "npm_config_registry=https://registry.example.com/ hf_hub_download(repo_id)",
        "https://example.com:443/path?token_count=5",
        'api_key = os.environ["OPENAI_API_KEY"]',
        "const token: string = await getAccessToken2(client);",
        'password = getpass.getpass("Password: ")',
        '{"password": "Mot de passe oublié ?", "token": "Jeton"}',
        "secret_key: ${{ secrets.DEPLOY_KEY_2 }}",
        "API_KEY=your-api-key-1234",
        "password: changeme1234",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:MyTestDatabaseSecret-a1b2c3",
        "--token-file /run/secrets/token1 --key-id 2f6c1d70",
        "auth = BedrockSigV4Auth(config=config)",
        '"nextPageToken": "CAUQAA9fd8e7b3a1c4d2"',
        '"integrity": "sha512-9xgohfBgQ8Gsb0GnZEf+kQ/vW2dBQVxYH9V1vuIsN4zmtk3J8Ke80tOlWO0EBoc=="',
        "cache_key: 3f786850e387550fdab836ed7e6dc881de23001b",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3vPpHcR0kzYQ9w0o3l7d1m2n4b5v6c user@host",
        "token_ids = [101, 2023, 2003], max_tokens: 4096000000",
        "def test_token_of_version_2_is_refused(): ...",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert scrub(text) == text


def test_secrets_are_found_wherever_programs_and_people_write_them() -> None:
    lost = missed(1)
    assert len(lost) <= 0.01 * len(list(cases(1))), [case.text for case in lost]


@pytest.mark.parametrize("case", ["PASSWORD={}\n", '  "auth_token": "{}",\n', "--api-key {}\n"])
def test_no_piece_of_a_stream_shows_a_part_of_a_value_behind_its_name(case: str) -> None:
    text = "line one\n" + case.format("aB3dE5gH7jK9") + "line three\n"
    if "PASSWORD" not in case:
        text = text.replace("aB3dE5gH7jK9", "aB3dE5gH7jK9mN1pQ2rS")
    full_text = scrub(text)
    assert "[secret]" in full_text
    for cut in range(text.index("=") + 1 if "=" in case else text.index("aB3"), len(text)):
        pending = incomplete_tail(text[:cut], [])
        assert scrub(text[: cut - pending]) + scrub(text[cut - pending :]) == full_text, cut


def test_text_made_to_slow_the_search_down_does_not() -> None:
    hostile = ["://a:", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "SG.", "authorization: "]
    hostile += [
        "password=",
        "api_key: ",
        "token" * 9,
        "key=" + "a1B2" * 9,
        '"secret", ',
        ":AA",
        ".G",
        "key=",
        "pwd=",
        "x",
    ]
    hostile += [
        "://" + "a1" * 60,
        "secret_access_key=",
        "-----BEGIN PRIVATE KEY-----\n" + "aa: " * 9,
    ]
    for piece in hostile:
        text = (piece * (50_000 // len(piece) + 1))[:50_000]
        began = time.process_time()
        scrub(text)
        assert time.process_time() - began < 0.5, piece[:20]


VALUES = ["open-sesame+4711/hushhush", "sk-proj-" + "aB3dE5gH7j" * 4]


def in_base64(shift: int) -> Callable[[str], str]:
    return lambda value: base64.b64encode(b"user:"[:shift] + value.encode() + b" and more").decode()


def in_base32(shift: int) -> Callable[[str], str]:
    return lambda value: base64.b32encode(b"user:"[:shift] + value.encode() + b" and more").decode()


ENCODERS: dict[str, Callable[[str], str]] = {
    "URL-encoded": lambda value: f"?key={quote(value, safe='')}&a=1",
    "URL-encoded in lowercase": lambda value: quote(value, safe="").replace("%2B", "%2b"),
    "form-encoded": lambda value: urlencode({"key": value}),
    "JSON": lambda value: json.dumps({"key": value}),
    "JSON with escapes": lambda value: value.replace("/", "\\/").replace("+", "\\u002B"),
    "JSON in JSON": lambda value: json.dumps(json.dumps(value).replace("/", "\\/")),
    "HTML": lambda value: f"<b>{value.replace('+', '&#43;').replace('/', '&#x2F;')}</b>",
    "hexadecimal": lambda value: value.encode().hex(),
    "HEXADECIMAL": lambda value: value.encode().hex().upper(),
    **{f"base64 behind {shift} bytes": in_base64(shift) for shift in range(6)},
    "base64 for addresses": lambda value: base64.urlsafe_b64encode(f"{value}??".encode()).decode(),
    "wrapped base64": lambda value: base64.encodebytes(f"{'x' * 40}{value}".encode()).decode(),
    "base64 twice": lambda value: base64.b64encode(base64.b64encode(value.encode())).decode(),
    **{f"base32 behind {shift} bytes": in_base32(shift) for shift in range(5)},
    "cut off": lambda value: value[:16],
    "the end": lambda value: value[-13:],
    "masked": lambda value: f"Incorrect API key provided: {value[:6]}{'*' * 12}{value[-4:]}.",
    "masked with dots": lambda value: f"key {value[:10]}...{value[-4:]} is wrong",
}


@pytest.mark.parametrize("value", VALUES, ids=["words", "key"])
@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_known_value_is_found_in_every_encoding(encoding: str, value: str) -> None:
    encoded = ENCODERS[encoding](value)
    scrubbed = scrub(f"before {encoded} after", [value])
    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")
    assert "[secret]" in scrubbed
    for part in (encoded[at : at + 24] for at in range(0, len(encoded) - 24, 8)):
        if "\n" not in part and part not in scrubbed:
            break
    else:
        assert len(encoded) <= 40
        assert encoded not in scrubbed


def xxd(value: str) -> str:
    raw = value.encode()
    pairs = [raw[at : at + 2].hex() for at in range(0, len(raw), 2)]
    return "".join(
        f"{at * 2:08x}: {' '.join(pairs[at : at + 8])}\n" for at in range(0, len(pairs), 8)
    )


def od(value: str, *options: str) -> str:
    """The output of `od` for the value."""
    ran = subprocess.run(["od", *options], input=value.encode(), capture_output=True, check=True)
    return ran.stdout.decode()


SPREAD: dict[str, Callable[[str], str]] = {
    "backwards": lambda value: value[::-1],
    "ROT13": lambda value: codecs.encode(value, "rot13"),
    "letter by letter": " ".join,
    "a letter a line": "\n".join,
    "a list of letters": lambda value: json.dumps(list(value)),
    "od -c": "   ".join,
    "bytes": lambda value: value.encode().hex(" "),
    "bytes of C": lambda value: ", ".join(f"0x{byte:02X}" for byte in value.encode()),
    "escapes of JSON": lambda value: "".join(f"\\u{ord(sign):04x}" for sign in value),
    "references of HTML": lambda value: "".join(f"&#{ord(sign)};" for sign in value),
    "hexadecimal references": lambda value: "".join(f"&#x{ord(sign):x};" for sign in value),
    "octal escapes": lambda value: "".join(f"\\{byte:03o}" for byte in value.encode()),
    "decimal bytes": lambda value: ", ".join(str(byte) for byte in value.encode()),
    "backslashes": lambda value: "".join(f"\\{sign}" for sign in value),
    "quoted-printable": lambda value: "".join(f"={byte:02X}" for byte in value.encode()),
    "invisible characters": "\u200b".join,
    "UTF-16 in hexadecimal": lambda value: value.encode("utf-16-le").hex(),
    "UTF-16 in base64": lambda value: base64.b64encode(value.encode("utf-16-le")).decode(),
    "base64 reversed": lambda value: base64.b64encode(value.encode()).decode()[::-1],
    "escaped bytes": lambda value: "".join(f"\\x{byte:02x}" for byte in value.encode()),
    "an address of escapes": lambda value: "".join(f"%{byte:02X}" for byte in value.encode()),
    "cases swapped": str.swapcase,
    "full-width": lambda value: "".join(chr(ord(sign) + 0xFEE0) for sign in value),
    "bits": lambda value: " ".join(f"{byte:08b}" for byte in value.encode()),
    "base64 of hexadecimal": lambda value: in_base64(1)(value.encode().hex()),
    "hexadecimal of base64": lambda value: in_base64(2)(value).encode().hex(),
    **{
        f"{name} behind {shift} bytes": lambda value, encode=encode, shift=shift: encode(  # type: ignore[misc]
            b"=" * shift + value.encode()
        ).decode()
        for name, encode in (("base85", base64.b85encode), ("Ascii85", base64.a85encode))
        for shift in range(4)
    },
    "gzip in base64": lambda value: base64.b64encode(gzip.compress(value.encode())).decode(),
    "gzip in wrapped base64": lambda value: base64.encodebytes(
        gzip.compress(f"key={value}".encode())
    ).decode(),
    "zlib in base64": lambda value: base64.b64encode(zlib.compress(value.encode())).decode(),
    "zlib in hexadecimal": lambda value: zlib.compress(f"{{{value}}}".encode()).hex(),
    "bzip2 in base64": lambda value: base64.b64encode(bz2.compress(value.encode())).decode(),
    "xz in base64": lambda value: base64.b64encode(lzma.compress(value.encode())).decode(),
    "xxd": xxd,
    "od": od,
    "od from the second byte": lambda value: od(f"={value}"),
    "od -x": lambda value: od(value, "-x"),
    "od -t u1": lambda value: od(value, "-t", "u1"),
    "od -t d1": lambda value: od(value, "-t", "d1"),
    "uuencode": lambda value: binascii.b2a_uu(value[:45].encode()).decode(),
    "capitals": str.upper,
    "small letters": str.lower,
    "tabs": "\t".join,
    "soft hyphens": "\u00ad".join,
    "hexadecimal reversed": lambda value: value.encode().hex()[::-1],
    "hexadecimal of the reverse": lambda value: value[::-1].encode().hex(),
    "hexadecimal twice": lambda value: value.encode().hex().encode().hex(),
    "base64 of the reverse": lambda value: in_base64(1)(value[::-1]),
    "base32 in small letters": lambda value: in_base32(2)(value).lower(),
    "code points": lambda value: " ".join(f"U+{ord(sign):04X}" for sign in value),
    "calls of chr": lambda value: "+".join(f"chr({ord(sign)})" for sign in value),
    "an escaped address of escapes": lambda value: "".join(f"%25{ord(x):02X}" for x in value),
    "a version of Perl": lambda value: "v" + ".".join(str(byte) for byte in value.encode()),
    **{
        f"fold -w {width} behind {shift} characters": lambda value, width=width, shift=shift: (  # type: ignore[misc]
            "\n".join(textwrap.wrap("x" * shift + value, width))
        )
        for width in (2, 3, 4, 5, 11, 20)
        for shift in (0, 1)
    },
    "xxd from the second byte": lambda value: xxd("=" + value),
    **{
        f"hexdump of {width} bytes a line": lambda value, width=width: hexdump(value, width)  # type: ignore[misc]
        for width in (8, 16)
    },
    "od -t x4": lambda value: od(value, "-t", "x4"),
    "od -t x8": lambda value: od(value, "-t", "x8"),
    "od -t d2": lambda value: od(value, "-t", "d2"),
    "a number": lambda value: str(int.from_bytes(value.encode(), "big")),
    "a list of numbers on lines": lambda value: json.dumps(list(value.encode()), indent=2),
    "casts to bytes": lambda value: ", ".join(f"(byte) {byte}" for byte in value.encode()),
    "UTF-16 bytes": lambda value: value.encode("utf-16-le").hex(" "),
    "wrapped and indented base64": lambda value: "\n    ".join(
        textwrap.wrap(in_base64(1)(value), 7)
    ),
    "numbered lines of base64": lambda value: "\n".join(
        f"{number:6}\t{line}"
        for number, line in enumerate(textwrap.wrap(in_base64(0)(value), 20), 1)
    ),
    "some escapes of addresses": lambda value: escaped(value, "%{:02x}"),
    "some escapes of a shell": lambda value: escaped(value, "\\x{:02x}"),
    "some references of HTML": lambda value: escaped(value, "&#{:d};"),
    "strings joined by +": lambda value: '" + "'.join(textwrap.wrap(value, 6)),
    "lines of a string": lambda value: "'\n     '".join(textwrap.wrap(value, 9)),
    "cells of a table": lambda value: " | ".join(textwrap.wrap(value, 5)),
    "colours of a terminal": lambda value: "".join(
        f"\x1b[38;5;{number}m{sign}" for number, sign in enumerate(value)
    ),
    "overstruck letters": lambda value: "".join(f"{sign}\b{sign}" for sign in value),
    "tags of HTML": lambda value: "".join(f"<b>{part}</b>" for part in textwrap.wrap(value, 6)),
    **{
        f"zlib at level {level} in base64": lambda value, level=level: base64.b64encode(  # type: ignore[misc]
            zlib.compress(value.encode(), level)
        ).decode()
        for level in (1, 5, 9)
    },
    "a zip archive in base64": lambda value: base64.b64encode(zipped(value)).decode(),
}


def hexdump(value: str, width: int) -> str:
    raw = b"KEY=" + value.encode()
    rows = [raw[at : at + width] for at in range(0, len(raw), width)]
    return "".join(
        f"{number * width:08x}  {row.hex(' '):{width * 3}} |{row.decode()}|\n"
        for number, row in enumerate(rows)
    )


def escaped(value: str, form: str) -> str:
    """The value with every third character escaped."""
    return "".join(form.format(ord(sign)) if at % 3 == 1 else sign for at, sign in enumerate(value))


def zipped(value: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(".env", f"KEY={value}")
    return archive.getvalue()


@pytest.mark.parametrize("encoding", SPREAD)
def test_a_known_key_is_found_in_pieces_or_reversed(encoding: str) -> None:
    key = "sk-proj-" + random_key(60)
    encoded = SPREAD[encoding](key)
    scrubbed = scrub(f"before {encoded} after", [key])
    assert scrubbed.count("[secret]") >= 1
    assert len(scrubbed) < 40 + len(encoded) / 2


@pytest.mark.parametrize(
    "between", [" and then ", '";\nexport const part_2 = "', '",\n  "name": "', "\n12. character: "]
)
def test_a_known_key_is_found_in_pieces_between_other_words(between: str) -> None:
    # Of pieces of 11 characters a few in a thousand are missed; the same key is made in each run.
    key = "sk-proj-" + "".join(random.Random(1).choices(ALNUM, k=60))
    pieces = textwrap.wrap(key, 11)[:-1]
    scrubbed = scrub(f'before "{between.join(pieces)}" after', [key])
    assert [piece for piece in pieces if piece in scrubbed] == []
    assert scrubbed.count(between) == len(pieces) - 1


@pytest.mark.parametrize(
    "text",
    [
        "keys of this kind begin with sk-proj- and are long; sk-proj-... stands for one",
        "open the door, sesame; hush, hush; 4711",
        "c2stcHJvag== and 736b2d70",
        "a prefix such as `sk-` or `open-` alone says nothing",
        "sk-proj-aB once, sk-proj-aB twice, sk-proj-aB thrice",
    ],
)
def test_a_public_prefix_alone_is_not_a_part_of_a_known_key(text: str) -> None:
    assert scrub(text, VALUES) == text


def test_a_password_that_is_a_word_is_found_only_completely() -> None:
    value = "development-database"
    assert scrub("the developer of a development-data set", [value]) == (
        "the developer of a development-data set"
    )
    assert scrub(f"pw={value}!", [value]) == "pw=[secret]!"


@pytest.mark.parametrize("value", VALUES, ids=["words", "key"])
@pytest.mark.parametrize("encoding", ["JSON", "base64 behind 1 bytes", "hexadecimal"])
def test_no_piece_of_a_stream_shows_a_part_of_a_known_value(encoding: str, value: str) -> None:
    encoded = ENCODERS[encoding](value)
    text = f"line one\nvalue: {encoded} and more\n"
    for cut in range(len(text)):
        pending = incomplete_tail(text[:cut], [value])
        visible = scrub(text[: cut - pending], [value]) + scrub(text[cut - pending :], [value])
        assert visible == scrub(text, [value]), cut


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\t", ": ", ".\n", "  \n"])
def test_white_space_at_the_end_of_a_stream_is_not_held_back(end: str) -> None:
    value = "q" + random_key(30, string.digits + "fgh")  # no other character begins a form of it
    assert incomplete_tail(f"Ready{end}", [value]) == 0


def test_many_known_values_cost_little_time_in_a_long_text() -> None:
    known_values = [f"sk-proj-{random_key(60)}" for _ in range(20)]
    texts = ["an ordinary line of a log, with numbers 1234 and names\n" * 20_000]
    texts += [
        random_key(1_000_000),
        (known_values[0][:7] + "...") * 5_000,
        known_values[0][:14] * 20_000,
    ]
    scrub("", known_values)
    for text in texts:
        began = time.process_time()
        scrub(text, known_values)
        assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "line",
    [
        "pip/_vendor/pygments/token.py,sha256=vA2yNHGJBHfq4jNQSah7C9DmIOp34MmYHPA8P-cYAHI,6184",
        "platformdirs/version.py,sha256=qaN-fw_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LA,160",
        "as-if-by-magic as-abcdefghijklmnopqrstuv x.s.getElementsByTagNameNS2",
    ],
)
def test_hashes_of_files_and_ordinary_words_stay(line: str) -> None:
    assert scrub(line) == line
