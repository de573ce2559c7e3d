from __future__ import annotations

import time

import pytest

from acp_agent.config.secret_questions import asks_for_secret


@pytest.mark.parametrize(
    "question",
    [
        "What is your OpenAI API key?",
        "Please paste your GitHub token here.",
        "Enter the database password:",
        "API key?",
        "GitHub token:",
        "Password",
        "I need your AWS secret access key to deploy.",
        "Can you provide the SSH private key?",
        "What's the password for the staging server?",
        "Which token should I use?",
        "Please type the 6 digit verification code",
        "Please share the connection string for production",
        "Please enter your credit card number",
        "Paste a value that starts with sk-",
        "The value looks like ghp_xxxx",
        "请输入你的密码",
        "数据库密码是什么？",
        "密码：",
    ],
)
def test_a_question_for_the_value_of_a_secret_is_detected(question: str) -> None:
    assert asks_for_secret("Which colour?", question)


@pytest.mark.parametrize(
    "question",
    [
        "Which colour?",
        "Should the token expire after an hour?",
        "How many tokens should the context have?",
        "What is the password policy?",
        "Should passwords be hashed with argon2 or bcrypt?",
        "Where is the API key stored?",
        "Which environment variable holds the API key?",
        "Do you have an API key?",
        "Which authentication should I use: password or token?",
        "What are the token types of the lexer?",
        "Please provide the path of the password file",
        "Enter the primary key column",
        "What is your email address?",
        "密码长度至少多少？",
    ],
)
def test_a_question_about_secrets_does_not_ask_for_one(question: str) -> None:
    assert not asks_for_secret(question)


def test_a_hostile_question_is_checked_quickly() -> None:
    asks_for_secret("")  # the patterns are read
    started = time.process_time()
    for text in ("enter ", "what is your ", "a ", "password ", "请输入"):
        asks_for_secret(text * 10_000)
    assert time.process_time() - started < 2
