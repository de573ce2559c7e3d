-- Sessions with the strange agent: what is asked, what is answered, what goes wrong.
local it = ...
local t = require("helpers")
local config = require("acp_agent.config")

--- Why a client of this command does not become ready.
local function problem_of(command, settings)
  require("acp_agent.client").stop_all()
  t.told = {}
  local all = vim.tbl_deep_extend(
    "force",
    { agents = { strange = { command = command } }, agent = "strange" },
    settings or {}
  )
  t.same(require("acp_agent").setup(all), true)
  local problem, client
  require("acp_agent.client").get("strange", function(why, one)
    problem, client = why, one
  end)
  t.wait(function()
    return problem or client
  end, "an answer", 10000)
  return problem
end

--- Waits for a permission and gives it.
local function asked(session)
  return t.wait(function()
    return session.asks[1]
  end, "a permission")
end

local function say(session, text)
  t.same(session:submit(text, { { type = "text", text = text } }), nil)
end

local function over(session)
  t.wait(function()
    return not session.turn
  end, "the end of the turn")
end

it("an agent that is missing is named, with what to do", function()
  local problem = problem_of({ "/no/such/agent" })
  t.has(problem, "there is no program /no/such/agent; install it")
  t.same(require("acp_agent.client").running.strange, nil)
end)

it("an agent that dies at start is told with its last words, inert", function()
  local problem = problem_of(t.agent("dies"))
  t.has(problem, "ended with exit code 3: warming up / no key is configured␛[31m")
end)

it("an agent of another version is told and ended", function()
  t.has(problem_of(t.agent("version")), "speaks version 2 of the protocol; this plugin speaks version 1")
end)

it("an agent whose answer is no answer is told", function()
  t.has(problem_of(t.agent("wrong")), "speaks version ?")
end)

it("an agent that never answers is given up after the deadline, and ended", function()
  local problem = problem_of(t.agent("silent"), { timeouts = { initialize = 200 } })
  t.has(problem, "did not answer initialize within 0.2 seconds")
end)

it("lines that are no messages are told, and what follows them is read", function()
  local session = t.session("garbage")
  t.turn(session, "garbage")
  local text = t.text(session)
  t.has(text, "a line that cannot be read (it is not JSON): this is no JSON")
  t.has(text, "goes on sending lines that cannot be read")
  t.has(text, "still here")
  t.same(#t.told + select(2, text:gsub("cannot be read", "")), 4)
  assert(not text:find("\27", 1, true))
end)

it("a line that is too long is left out, told, and what follows it is read", function()
  local process = require("acp_agent.process")
  local session = t.session()
  local limit = process.LINE_LIMIT
  process.LINE_LIMIT = 100000
  t.turn(session, "long 250000")
  process.LINE_LIMIT = limit
  t.has(t.text(session), "a message of 250000 bytes is too long and was left out")
  t.has(t.text(session), "after it")
end)

it("an agent that advertises nothing is used as it is", function()
  local session = t.session("bare")
  t.same(
    { session.client:steers(), session.client:offers("load"), session.client:offers("list") },
    { false, false, false }
  )
  t.turn(session, "hello")
  t.has(t.text(session), "hello")
end)

it("a turn is sent, streamed and ended, and what it says of the session is kept", function()
  local session = t.session()
  t.turn(session, "markdown")
  t.same(session.title, "A title")
  t.same(session.usage, { used = 12000, size = 200000, cost = { amount = 0.25, currency = "USD" } })
  t.same(session.plan, { done = 1, all = 3 })
  t.same(
    require("acp_agent.status").line(session),
    "Strange agent · idle · Ask · Model 1 · plan 1/3 · 12k/200k 6%% $0.25"
  )
  session:update({ sessionUpdate = "session_info_update" })
  t.same(session.title, "A title")
  session:update({ sessionUpdate = "session_info_update", title = vim.NIL })
  t.same(session.title, nil)
end)

it("hostile text in every field is shown inert and does nothing", function()
  local session = t.session()
  t.turn(session, "hostile")
  local text = t.text(session)
  assert(not text:find("[%z\1-\8\11-\31\127]"), "a control character is left")
  assert(not text:find("\226\128\174"), "a character that reorders is left")
  t.has(text, "␛[2J")
  local line = require("acp_agent.status").line(session)
  local shown = vim.api.nvim_eval_statusline(line, { maxwidth = 500 }).str
  t.has(shown, "Strange agent")
  t.same(vim.fn.filereadable("hacked"), 0)
  t.turn(session, "still well")
  t.has(t.text(session), "still well")
end)

it("a permission is answered by what the user chose", function()
  local session, folder = t.session()
  t.write(folder .. "/a.txt", "old\n")
  say(session, "edit " .. folder .. "/a.txt")
  local ask = asked(session)
  t.same(ask.title, "Edit it")
  t.has(t.text(session), "1 a  Allow once")
  ask:choose_kind("reject_once")
  over(session)
  t.has(t.text(session), '{"optionId": "no", "outcome": "selected"}')
  t.same(t.read(folder .. "/a.txt"), "old\n")
  say(session, "edit " .. folder .. "/a.txt")
  asked(session):choose_kind("allow_once")
  over(session)
  t.same(t.read(folder .. "/a.txt"), "new\n")
end)

it("where the agent offers no answer of the kind the user chooses among its own", function()
  local session, folder = t.session()
  t.write(folder .. "/a.txt", "old\n")
  say(session, "edit " .. folder .. "/a.txt")
  t.answers = { "Always allow" }
  asked(session):choose_kind("reject_always")
  t.wait(function()
    return #t.asked == 1
  end)
  over(session)
  t.has(t.text(session), '"optionId": "ever"')
end)

it("a cancel answers the open question and ends the turn", function()
  local session, folder = t.session()
  t.write(folder .. "/a.txt", "old\n")
  say(session, "edit " .. folder .. "/a.txt")
  local ask = asked(session)
  session:cancel()
  t.same({ ask.done, #session.asks }, { true, 0 })
  over(session)
  t.has(t.text(session), "cancelled")
end)

it("a question that the agent takes back is closed", function()
  local session = t.session()
  t.turn(session, "take-back x")
  t.has(t.text(session), "taken back:")
  t.same(#session.asks, 0)
end)

it("an agent that does not end a cancelled turn is left to itself after the deadline", function()
  local session = t.session(nil, { timeouts = { cancel = 150 } })
  say(session, "hang")
  t.wait(function()
    return t.text(session):find("hanging")
  end)
  session:cancel()
  over(session)
  t.has(t.text(session), "does not end the turn")
end)

it("an agent that dies in a turn is told with its last words, and started again goes on", function()
  local session = t.session()
  say(session, "die")
  t.wait(function()
    return session.problem
  end, "its end")
  t.has(session.problem, "ended with exit code 9: something broke")
  t.has(t.text(session), "last words")
  t.same(session.turn, nil)
  t.has(session:submit("x", {}), "ended with exit code 9")
  local revived
  require("acp_agent.sessions").revive(session, function(problem, one)
    revived = problem or one
  end)
  t.wait(function()
    return revived
  end)
  t.same({ revived == session, session.problem }, { true, nil })
  t.turn(session, "again")
  t.has(t.text(session), "last words")
  t.has(t.text(session), "again")
end)

it("words during a turn steer it where the agent can be steered", function()
  local session = t.session()
  say(session, "wait")
  t.wait(function()
    return t.text(session):find("waiting")
  end)
  say(session, "more of this")
  t.wait(function()
    return t.text(session):find("steered: more of this")
  end, "steering")
  session:cancel()
  over(session)
end)

it("words during a turn wait for its end where the agent cannot be steered", function()
  local session = t.session("queue")
  say(session, "run sleep 0.1")
  say(session, "the next one")
  t.same(#session.queue, 1)
  t.wait(function()
    return not session.turn and #session.queue == 0
  end)
  t.has(t.text(session), '[{"text": "the next one", "type": "text"}]')
end)

it("what waits goes back to the prompt when the turn is cancelled", function()
  local session = t.session("queue")
  local chat = require("acp_agent.chat").get(session)
  say(session, "wait")
  say(session, "one")
  say(session, "two")
  chat.prompt:set("being written")
  session:cancel()
  over(session)
  t.same(chat.prompt:text(), "one\n\ntwo\n\nbeing written")
  t.same(#session.queue, 0)
end)

it("the editor's files: unsaved text is read and written, the rest of the disk is closed", function()
  local session, folder = t.session()
  local path = folder .. "/a.txt"
  t.write(path, "disk\n")
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "un", "saved" })
  t.turn(session, ('call fs/read_text_file {"path": "%s"}'):format(path))
  t.has(t.text(session), [[{"content": "un\nsaved\n"}]])
  t.turn(session, ('call fs/read_text_file {"path": "%s", "line": 2, "limit": 1}'):format(path))
  t.has(t.text(session), [[{"content": "saved\n"}]])
  t.turn(session, ('call fs/write_text_file {"path": "%s", "content": "by the agent\\n"}'):format(path))
  t.same(t.read(path), "by the agent\n")
  t.turn(session, 'call fs/read_text_file {"path": "/etc/hostname"}')
  t.has(t.text(session), "outside the workspace")
  t.turn(session, 'call fs/write_text_file {"path": "/tmp/acp-outside", "content": "x"}')
  t.same(t.read("/tmp/acp-outside"), nil)
  t.turn(session, ('call fs/read_text_file {"path": "%s/none"}'):format(folder))
  t.has(t.text(session), '"code": -32002')
  t.turn(session, ('call fs/write_text_file {"path": "%s"}'):format(path))
  t.has(t.text(session), "content has to be a string")
end)

it("what the user typed since the agent read is not lost", function()
  local session, folder = t.session()
  local path = folder .. "/a.txt"
  t.write(path, "old\n")
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  say(session, "edit " .. path)
  local ask = asked(session)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "old", "typed meanwhile" })
  ask:choose_kind("allow_once")
  over(session)
  t.has(t.text(session), "cannot write: " .. path .. " changed since its diff was shown")
  t.same(require("acp_agent.files").buffer_text(buf), "old\ntyped meanwhile\n")
end)

it("what is not offered is not done", function()
  local session, folder = t.session(nil, { terminals = false, files = { read = false, write = false } })
  t.write(folder .. "/a", "x")
  for _, call in ipairs({
    ('call fs/read_text_file {"path": "%s/a"}'):format(folder),
    ('call fs/write_text_file {"path": "%s/a", "content": ""}'):format(folder),
    'call terminal/create {"command": "true"}',
    "call unheard/of {}",
  }) do
    t.turn(session, call)
  end
  t.same(select(2, t.text(session):gsub('"code": %-32601', "")), 4)
  t.turn(session, 'call fs/read_text_file {"sessionId": "another", "path": "/a"}')
  t.has(t.text(session), "session not found: another")
  config.set()
end)

it("a command runs in the editor, its output is live, bounded and told", function()
  local session = t.session()
  t.turn(session, [[run printf 'one\n\033[31mtwo'; exit 3]])
  local text = t.text(session)
  t.has(text, "✓ Run it")
  t.has(text, "      two")
  t.has(text, "[exit code 3]")
  t.has(
    text,
    [[{"exit": {"exitCode": 3, "signal": null}, "output": {"exitStatus": {"exitCode": 3, "signal": null}]]
  )
  t.turn(session, "run head -c 100000 /dev/zero | tr '\\0' é; kill -9 $$")
  t.has(t.text(session), [["signal": "SIGKILL"]])
  t.has(t.text(session), [["truncated": true]])
end)

it("what a command left running is ended with it, and at the end of the agent", function()
  local session, folder = t.session()
  local pids = folder .. "/pids"
  t.turn(session, ("run sleep 300 & echo $! > %s; exit 0"):format(pids))
  local first = tonumber(t.read(pids))
  t.wait(function()
    return not vim.uv.kill(first, 0)
  end, "the end of what was left in the background")
  t.turn(session, ("start echo $$ > %s; trap '' TERM; sleep 300"):format(pids))
  t.wait(function()
    return tonumber(t.read(pids)) ~= first
  end)
  local second = tonumber(t.read(pids))
  t.same(vim.uv.kill(second, 0), 0)
  session.client:finish("over", true)
  t.wait(function()
    return not vim.uv.kill(second, 0)
  end, "the end of the terminal")
end)

it("a terminal that is missing, or a program, is an error and nothing more", function()
  local session = t.session()
  t.turn(session, 'call terminal/output {"terminalId": "none"}')
  t.has(t.text(session), "terminal not found: none")
  t.turn(session, 'call terminal/create {"command": "/no/such/program"}')
  t.has(t.text(session), "/no/such/program did not start")
  t.turn(session, 'call terminal/create {"command": "true", "cwd": "/no/such/folder"}')
  t.has(t.text(session), "cwd is no folder")
end)

it("what an agent leaves behind ends with it", function()
  local session, folder = t.session()
  say(session, "orphan " .. folder .. "/pid")
  t.wait(function()
    return session.problem
  end, "its end")
  local pid = tonumber(t.read(folder .. "/pid"))
  t.wait(function()
    return not vim.uv.kill(pid, 0)
  end, "the end of what it left")
end)

it("the end of the agent ends its process group", function()
  local session = t.session()
  local pid = session.client.process.pid
  session.client:finish("over", true)
  t.wait(function()
    return not vim.uv.kill(-pid, 0)
  end, "its end")
  t.has(t.text(session), "over")
end)

it("options of every kind are chosen, and the agent's answer is what counts", function()
  local session = t.session()
  local options = require("acp_agent.options")
  t.answers = { "B / Model 2" }
  options.choose(session, "model")
  t.wait(function()
    return options.chosen(options.of_category(session, "model")) == "Model 2"
  end)
  t.answers = { "Fast" }
  options.choose(session)
  t.wait(function()
    return options.chosen(session.options[3]) == "on"
  end)
  options.choose(session, "thought_level")
  t.has(t.told[#t.told], "offers no choice of thought level")
end)

it("older modes are chosen where there are no options", function()
  local session = t.session("bare")
  session.modes =
    { current = "a", available = { { id = "a", name = "Mode A" }, { id = "b", name = "Mode B" } } }
  t.same(require("acp_agent.options").mode(session), "Mode A")
  session:update({ sessionUpdate = "current_mode_update", currentModeId = "b" })
  t.same(require("acp_agent.options").mode(session), "Mode B")
  t.answers = { "Mode A" }
  require("acp_agent.options").choose(session, "mode")
  t.wait(function()
    return (t.told[1] or ""):find("the mode was not set: method not found")
  end)
end)

it("kept conversations of all pages are listed, loaded with what was said, resumed, forked", function()
  local session = t.session()
  local sessions, client = require("acp_agent.sessions"), session.client
  local opened
  local function done(problem, one)
    opened = problem or one
  end
  t.answers = { "An older one", "Open, with what was said" }
  sessions.pick(client, done)
  t.wait(function()
    return opened
  end)
  t.same(t.asked[1].items, { "An old one  — 2026-01-02 03:04 in /tmp", "An older one  —  in /tmp" })
  t.same(opened.id, "s-older")
  t.same(t.text(opened), "▍ what I said\n\nwhat it answered")
  opened = nil
  sessions.resume(client, { id = "s-old", cwd = "/tmp" }, done)
  t.wait(function()
    return opened
  end)
  t.same(t.text(opened), "")
  opened = nil
  sessions.fork(client, { id = "s-old", cwd = "/tmp" }, done)
  t.wait(function()
    return opened
  end)
  t.same({ opened.id, t.text(opened) }, { "s-2", "▍ what I said\n\nwhat it answered" })
end)

it(
  "a conversation is renamed and deleted where the agent offers it, deleted only when asked twice",
  function()
    local session = t.session()
    local sessions, client = require("acp_agent.sessions"), session.client
    sessions.rename(client, { id = session.id, cwd = session.cwd }, "Another title")
    t.wait(function()
      return session.title == "Another title"
    end)
    t.answers = { "Keep it" }
    sessions.delete(client, { id = session.id, cwd = session.cwd })
    t.wait(function()
      return #t.asked == 1
    end)
    t.turn(session, "still here")
    t.turn(session, "whatever was asked for meanwhile is done by now")
    t.same(session.problem, nil)
    t.answers = { "Delete it" }
    sessions.delete(client, { id = session.id, cwd = session.cwd })
    t.wait(function()
      return session.problem
    end)
    t.same(sessions.actions(t.session("bare").client), {})
  end
)

it("a login that is needed is offered, and then the conversation opens", function()
  t.session("bare")
  t.answers = { "Use a key" }
  local session
  require("acp_agent.client").stop_all()
  require("acp_agent").setup({ agents = { strange = { command = t.agent("login") } }, agent = "strange" })
  require("acp_agent.client").get("strange", function(_, client)
    require("acp_agent.sessions").create(client, t.folder(), function(problem, one)
      session = problem or one
    end)
  end)
  t.wait(function()
    return session
  end)
  t.same(session.id, "s-1")
  t.same(t.asked[1].items, { "Use a key", "Another" })
end)

it("a form is filled in field by field, what does not fit is asked again", function()
  local session = t.session()
  local schema = vim.json.encode({
    type = "object",
    required = { "name", "count" },
    properties = {
      name = { type = "string", title = "Name", minLength = 2 },
      count = { type = "integer", minimum = 1 },
      colour = {
        type = "string",
        oneOf = { { const = "r", title = "Red" }, { const = "g", title = "Green" } },
      },
      many = { type = "array", items = { type = "string", enum = { "x", "y" } } },
      sure = { type = "boolean" },
    },
  })
  t.answers = { "zero", "1.5", "0", "3", "A", "Ada", "Green", "[ ] y", "Done", "No" }
  t.turn(
    session,
    ('call elicitation/create {"mode": "form", "message": "Tell me", "requestedSchema": %s}'):format(schema)
  )
  t.has(
    t.text(session),
    '{"action": "accept", "content": {"colour": "g", "count": 3, "many": ["y"], "name": "Ada", "sure": false}}'
  )
  t.answers = { false }
  t.turn(
    session,
    ('call elicitation/create {"mode": "form", "message": "Tell me", "requestedSchema": %s}'):format(schema)
  )
  t.has(t.text(session), '{"action": "cancel"}')
end)

it("a page is opened only as it was shown, and what is no address never", function()
  local session = t.session()
  local opened = {}
  vim.ui.open = function(url)
    table.insert(opened, url)
  end
  t.answers = { "Open https://example.org/login" }
  t.turn(
    session,
    'call elicitation/create {"mode": "url", "elicitationId": "1", "url": "https://example.org/login", "message": "Log in"}'
  )
  t.same(opened, { "https://example.org/login" })
  for _, url in ipairs({
    "file:///etc/passwd",
    "javascript:alert(1)",
    "https://a b",
    "--help",
    "https://x\\u001b[31m",
  }) do
    t.answers = { "Open " }
    t.turn(
      session,
      ('call elicitation/create {"mode": "url", "elicitationId": "1", "url": "%s", "message": "m"}'):format(
        url
      )
    )
  end
  t.same(#opened, 1)
  t.turn(session, 'call elicitation/create {"mode": "dance", "message": "m"}')
  t.has(t.text(session), "mode is not supported: dance")
end)

it("files and selections go along as links and as text, as the agent can take them", function()
  local context = require("acp_agent.context")
  local session, folder = t.session()
  t.write(folder .. "/a file.lua", "one\ntwo\nthree\n")
  t.write(folder .. "/b.txt", "b\n")
  local buf = vim.fn.bufadd(folder .. "/a file.lua")
  vim.fn.bufload(buf)
  session.context = { context.lines(buf, 2, 3) }
  local blocks = context.blocks("see (@b.txt), @none and mail@b.txt.", session)
  t.same(blocks, {
    { type = "text", text = "see (@b.txt), @none and mail@b.txt." },
    {
      type = "resource",
      resource = {
        uri = vim.uri_from_fname(folder .. "/a file.lua") .. "#L2-L3",
        text = "two\nthree\n",
        mimeType = "text/x-lua",
      },
    },
    {
      type = "resource_link",
      uri = "file://" .. folder .. "/b.txt",
      name = "b.txt",
      mimeType = "text/plain",
    },
  })
  t.turn(session, "see", blocks)
  t.same(context.file(folder), nil)
  t.same(select(2, context.file(folder .. "/none")), "no such file: " .. folder .. "/none")
  local plain = t.session("plain-context")
  t.same(context.block({ path = "/x/y.md", first = 1, last = 2, text = "```\nx\n" }, plain), {
    type = "text",
    text = "/x/y.md:1-2:\n````\n```\nx\n````",
  })
end)

it("commands and files complete where they can stand", function()
  local completion = require("acp_agent.completion")
  local session, folder = t.session()
  t.write(folder .. "/alpha.lua", "")
  session:update({
    sessionUpdate = "available_commands_update",
    availableCommands = {
      { name = "help", description = "Helps\27[2J" },
      { name = "model", description = "Model", input = { hint = "name" } },
      { name = 3 },
      { name = "evil\n:!touch hacked" },
    },
  })
  local function words(line, first)
    local found = completion.at(session, line, #line, first)
    return found and vim.tbl_map(function(item)
      return item.word
    end, found.items)
  end
  t.same(words("/", true), { "/help", "/model " })
  t.same(words("/he", true), { "/help" })
  t.same(words("/he", false), nil)
  t.same(words("look at @alp", false), { "@alpha.lua" })
  t.same(words("mail@alp", false), nil)
end)

require("acp_agent.client").stop_all()
