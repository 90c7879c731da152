"""Parse the command lines of curl and wget: the URLs, and the names they are saved under.

They are parsed as the tools do it, as the value of an option (`--referer https://…`) is not a URL
to download.
"""

import os
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

# options that take a value
_CURL_SHORT = "ACDEFHKPQTUXYbcdemortuwxyz"
_CURL_LONG = (
    "abstract-unix-socket alt-svc aws-sigv4 cacert capath cert cert-type ciphers config"
    " connect-timeout connect-to continue-at cookie cookie-jar create-file-mode crlfile curves"
    " data data-ascii data-binary data-raw data-urlencode delegation dns-interface"
    " dns-ipv4-addr dns-ipv6-addr dns-servers doh-url dump-header egd-file engine etag-compare"
    " etag-save expect100-timeout form form-string ftp-account ftp-alternative-to-user"
    " ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms header hostpubmd5"
    " hostpubsha256 hsts interface ipfs-gateway json keepalive-time key key-type krb libcurl"
    " limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs"
    " max-time netrc-file noproxy oauth2-bearer output output-dir parallel-max pass pinnedpubkey"
    " preproxy proto proto-default proto-redir proxy proxy-cacert proxy-capath proxy-cert"
    " proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type"
    " proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype"
    " proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 pubkey quote random-file range rate"
    " referer request request-target resolve retry retry-delay retry-max-time sasl-authzid"
    " service-name socks4 socks4a socks5 socks5-gssapi-service socks5-hostname speed-limit"
    " speed-time stderr telnet-option tftp-blksize time-cond tls-max tls13-ciphers tlsauthtype"
    " tlspassword tlsuser trace trace-ascii trace-config unix-socket upload-file url url-query"
    " user user-agent variable write-out"
)
# options that name files which the tool writes for itself
_CURL_OWN = {"c", "D", "cookie-jar", "dump-header", "etag-save", "stderr", "trace", "trace-ascii"}
_CURL_OWN |= {"hsts", "alt-svc", "libcurl"}

_WGET_SHORT = "ABDIOPQRTUXaeiltow"
_WGET_LONG = (
    "accept accept-regex append-output backups base bind-address body-data body-file"
    " ca-certificate ca-directory certificate certificate-type ciphers compression config"
    " connect-timeout crl-file cut-dirs default-page directory-prefix dns-timeout domains"
    " exclude-directories exclude-domains execute follow-tags ftp-password ftp-user header"
    " hsts-file http-password http-user ignore-tags include-directories input-file level"
    " limit-rate load-cookies local-encoding method output-document output-file password"
    " pinnedpubkey post-data post-file prefer-family private-key private-key-type progress"
    " proxy-password proxy-user quota read-timeout referer regex-type reject reject-regex"
    " rejected-log remote-encoding report-speed restrict-file-names retry-on-http-error"
    " save-cookies secure-protocol start-pos timeout tries use-askpass user user-agent wait"
    " waitretry warc-dedup warc-file warc-header warc-max-size warc-tempdir"
)
_WGET_OWN = {"o", "a", "output-file", "append-output", "save-cookies", "rejected-log", "hsts-file"}
_WGET_MANY_URLS = {"r", "m", "p", "recursive", "mirror", "page-requisites", "i", "input-file"}
_SERVER_CHOOSES_NAME = {"J", "remote-header-name", "content-disposition", "trust-server-names"}


class Fetch(Struct):
    """The downloads of a command line."""

    targets: list[tuple[str, str | None]] = field(default_factory=list)
    """(URL, its file name); None: standard output, or a name that the server chooses."""
    own_files: list[str] = field(default_factory=list)
    """Files that the tool writes for itself, such as logs and cookies."""
    complete: bool = True
    """False if it may download more than `targets` (a list in a file, a recursive download)."""


def parse_curl(arguments: list[str]) -> Fetch:
    """Parse the arguments of curl: the N-th output option belongs to the N-th URL."""
    fetch = Fetch()
    urls: list[str] = []
    outputs: list[str | None] = []  # None: the last part of the URL
    directory, every, server, glob = "", False, False, True

    def add_targets() -> None:
        for number, url in enumerate(urls):
            given = outputs[number] if number < len(outputs) else (None if every else "-")
            if glob and re.search(r"[{\[]", url):
                fetch.complete = False
                continue
            name = url.rpartition("/")[2].partition("?")[0] if given is None else given
            known = name not in ("", "-") and not (given is None and server)
            fetch.targets.append(
                (_with_scheme(url), os.path.join(directory, name) if known else None)
            )

    for option, value in _scan(arguments, _CURL_SHORT, frozenset(_CURL_LONG.split())):
        if option in ("", "url"):
            urls.append(value)
        elif option in ("o", "output"):
            outputs.append(value)
        elif option in ("O", "remote-name"):
            outputs.append(None)
        elif option == "output-dir":
            directory = value
        elif option in ("next", ":"):
            add_targets()
            urls, outputs, directory, every, server, glob = [], [], "", False, False, True
        else:
            every |= option == "remote-name-all"
            server |= option in _SERVER_CHOOSES_NAME
            glob &= option not in ("g", "globoff")
            fetch.complete &= option not in ("K", "config")
            if option in _CURL_OWN:
                fetch.own_files.append(value)
    add_targets()
    return fetch


def parse_wget(arguments: list[str]) -> Fetch:
    """Parse the arguments of wget: each URL has its own file, or all go to `-O`."""
    fetch = Fetch()
    urls: list[str] = []
    options: dict[str, str] = {}
    for option, value in _scan(arguments, _WGET_SHORT, frozenset(_WGET_LONG.split())):
        if not option:
            urls.append(value)
        elif option == "n":
            options["n" + value] = ""
        else:
            options[option] = value
            if option in _WGET_OWN:
                fetch.own_files.append(value)
    fetch.complete = not options.keys() & _WGET_MANY_URLS
    document = options.get("O", options.get("output-document"))
    directory = options.get("P", options.get("directory-prefix", ""))
    with_host = options.keys() & {"x", "force-directories", "r", "m", "p", "recursive", "mirror"}
    server = options.keys() & _SERVER_CHOOSES_NAME
    for url in map(_with_scheme, urls):
        if document is not None:
            known = document != "-" and len(urls) == 1
            fetch.targets.append((url, document if known else None))
            fetch.complete &= len(urls) == 1
        elif server:
            fetch.targets.append((url, None))
        else:
            default = options.get("default-page", "index.html")
            name = _wget_name(url, default, with_host=bool(with_host))
            fetch.targets.append((url, os.path.join(directory, name)))
    return fetch


def _wget_name(url: str, default: str, *, with_host: bool) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return default
    name = unquote(parts.path).lstrip("/") if with_host else unquote(parts.path.rpartition("/")[2])
    if not name or name.endswith("/"):
        name += default
    if parts.query:
        name += "?" + unquote(parts.query).replace("/", "%2F")
    return os.path.join(host, name) if with_host else name


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _scan(arguments: list[str], short: str, long: frozenset[str]) -> Iterator[tuple[str, str]]:
    """(option, its value or empty) in order; other arguments have an empty option."""
    rest = iter(arguments)
    ended = False
    for word in rest:
        if ended or not word.startswith("-") or word == "-":
            yield "", word
        elif word == "--":
            ended = True
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals else (next(rest, "") if name in long else "")
        else:
            yield from _split_word(word[1:], short, lambda: next(rest, ""))


def _split_word(word: str, short: str, following: Callable[[], str]) -> Iterator[tuple[str, str]]:
    """The short options in one word; the first that takes a value takes the rest of the word."""
    for at, letter in enumerate(word):
        if letter in short:
            yield letter, word[at + 1 :] or following()
            return
        if letter == "n" and len(word) > 1 and short is _WGET_SHORT:  # such as -nc: one option
            yield "n", word[at + 1 :]
            return
        yield letter, ""
