"""Find access tokens by their form.

Most providers give their tokens a fixed prefix so that scanners can find them. The table has the
prefix, which is cheap to search for, and the pattern that must follow. Lengths are lower bounds, so
that longer tokens of the future match too. `docs/decisions/0011-secrets-by-their-form.md` says why
this table is our own.
"""

import re
from collections.abc import Iterator

_PREFIXES = {
    # Amazon
    ("AKIA", "ASIA", "ABIA", "ACCA"): r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    ("ABSK",): r"[A-Za-z0-9+/]{100,}={0,2}",
    # Google
    ("AIza",): r"[\w-]{35}",
    ("ya29.",): r"[\w.-]{20,}",
    ("GOCSPX-",): r"[\w-]{20,}",
    # GitHub, GitLab
    ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"): r"[A-Za-z0-9]{30,}",
    ("github_pat_",): r"\w{30,}",
    ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "gloas-", "glsoat-"): r"[\w.-]{20,}",
    ("glft-", "glffct-", "glimt-", "glagent-", "GR1348941"): r"[\w.-]{20,}",
    # Slack
    ("xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"): r"[\w.-]{10,}",
    ("xapp-",): r"\d-[\w-]{10,}",
    ("hooks.slack.com/services/", "hooks.slack.com/workflows/"): r"[\w/]{20,}",
    # Stripe
    ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"): r"[A-Za-z0-9+/=]{10,}",
    # OpenAI, Anthropic and others that follow them
    ("sk-",): r"[\w-]{30,}",
    ("gsk_", "xai-", "pplx-"): r"[A-Za-z0-9]{40,}",
    ("nvapi-",): r"[\w-]{40,}",
    ("r8_",): r"[A-Za-z0-9]{30,}",
    # Hugging Face, Weights & Biases, LangSmith
    ("hf_", "api_org_"): r"[A-Za-z0-9]{30,}",
    ("wandb_v1_", "lsv2_pt_", "lsv2_sk_"): r"\w{30,}",
    # package and image registries
    ("npm_",): r"[A-Za-z0-9]{36}",
    ("pypi-",): r"[\w-]{50,}",
    ("rubygems_",): r"[a-f0-9]{40,}",
    ("dckr_pat_", "dckr_oat_"): r"[\w-]{20,}",
    # clouds and services
    ("dapi",): r"[a-f0-9]{32}(?![A-Za-z0-9])",
    ("dop_v1_", "doo_v1_", "dor_v1_"): r"[a-f0-9]{64}",
    ("hvs.", "hvb."): r"[\w-]{24,}",
    ("glsa_", "glc_", "sntrys_", "sntryu_"): r"[\w+/=]{32,}",
    ("shpat_", "shpca_", "shppa_", "shpss_"): r"[a-fA-F0-9]{32}",
    ("sq0atp-", "sq0csp-"): r"[\w-]{20,}",
    ("SG.",): r"[\w-]{16,}\.[\w-]{30,}",
    ("pul-",): r"[a-f0-9]{40}",
    ("PMAK-",): r"[a-f0-9-]{50,}",
    ("figd_",): r"[\w-]{30,}",
    ("lin_api_", "ntn_"): r"[A-Za-z0-9]{30,}",
    # Clew itself
    ("clew_",): r"[0-9a-f]{16}_[0-9a-f]{64}",
    # keys
    ("AGE-SECRET-KEY-1",): r"[0-9A-Z]{58}",
    ("eyJ",): r"[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    ("-----BEGIN ",): r"[A-Z0-9 ]*PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]+-----|\Z)",
}

_EXPRESSIONS = {
    prefix: rf"(?<![A-Za-z0-9]){re.escape(prefix)}{rest}"
    for prefixes, rest in _PREFIXES.items()
    for prefix in prefixes
} | {
    "Q~": r"(?<![\w~.])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])",  # Azure
    ":AA": r"(?<!\d)\d{8,10}:AA[\w-]{33}",  # Telegram
}

_SHORTEST = 20
"""No token is shorter."""


def has_token(text: str) -> bool:
    """Whether the text may contain a token."""
    return len(text) >= _SHORTEST and any(map(text.__contains__, _EXPRESSIONS))


def find_tokens(text: str) -> Iterator[tuple[int, int]]:
    """The positions of the tokens, as (start, end)."""
    if len(text) < _SHORTEST:
        return
    for literal, expression in _EXPRESSIONS.items():
        if literal in text:
            for match in re.finditer(expression, text):
                yield match.span()
