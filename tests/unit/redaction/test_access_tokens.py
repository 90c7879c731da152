"""Access tokens that are known by their form. Those here are made up."""

import pytest

from clew.redaction import Redactor, mask_text

A = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF" * 3
TOKENS = {
    "AWS": f"AKIA{A[:16].upper()}",
    "Google": f"AIza{A[:35]}",
    "Google OAuth": f"ya29.{A[:40]}",
    "Slack": f"xoxb-123456789012-123456789012-{A[:24]}",
    "Slack webhook": f"https://hooks.slack.com/services/T0000/B0000/{A[:24]}",
    "Stripe": f"sk_live_{A[:24]}",
    "OpenAI": f"sk-proj-{A[:60]}",
    "Anthropic": f"sk-ant-api03-{A[:60]}",
    "Hugging Face": f"hf_{A[:34]}",
    "GitHub": f"ghp_{A[:36]}",
    "GitHub fine-grained": f"github_pat_{A[:22]}_{A[:59]}",
    "GitLab": f"glpat-{A[:20]}",
    "npm": f"npm_{A[:36]}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{A[:60]}",
    "Docker": f"dckr_pat_{A[:27]}",
    "Telegram": f"123456789:AA{A[:33]}",
    "Azure": f"abc8Q~{A[:34]}",
    "SendGrid": f"SG.{A[:22]}.{A[:43]}",
    "JWT": f"eyJ{A[:20]}.eyJ{A[:30]}.{A[:20]}",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_providers_token_is_known_by_its_form(token: str) -> None:
    assert Redactor({"HARMLESS": f"x {token}, y"}).names == {"HARMLESS"}
    assert token[-12:] not in mask_text(f"use {token}, please")
    found = Redactor({}).arguments(["x", f"--header={token}"])
    assert token[-12:] not in found.words[1]
    assert found.secrets["1"] in (["TOKEN"], ["ARGUMENT_1"])


@pytest.mark.parametrize(
    "word",
    ["sk-learn-is-a-library", "/usr/lib/npm_modules", "task-1234567890123456789012345678901234567",
     "AKIALIKE", "blake3:" + "0a" * 32, "src/xoxb-test.py", "a" * 4000],
)  # fmt: skip
def test_other_words_are_left_alone(word: str) -> None:
    assert Redactor({}).arguments(["x", word]) == (("x", word), {})
