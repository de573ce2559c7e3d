-- What the user chooses and gives: options, conversations, logins, forms, what goes with a prompt.
local it = ...
local t = require("helpers")

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
    return (t.told[1] or ""):find("could not set the mode: method not found")
  end)
end)

it("kept conversations of all pages are listed, loaded with what was said, resumed, forked", function()
  local session = t.session()
  local sessions, kept, client =
    require("acp_agent.sessions"), require("acp_agent.sessions.kept"), session.client
  local opened
  local function done(problem, one)
    opened = problem or one
  end
  t.answers = { "An older one", "Open with its messages" }
  kept.pick(client, done)
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
    local kept, client = require("acp_agent.sessions.kept"), session.client
    kept.rename(client, { id = session.id, cwd = session.cwd }, "Another title")
    t.wait(function()
      return session.title == "Another title"
    end)
    t.answers = { "Keep it" }
    kept.delete(client, { id = session.id, cwd = session.cwd })
    t.wait(function()
      return #t.asked == 1
    end)
    t.turn(session, "still here")
    t.turn(session, "whatever was asked for meanwhile is done by now")
    t.same(session.problem, nil)
    t.answers = { "Delete it" }
    kept.delete(client, { id = session.id, cwd = session.cwd })
    t.wait(function()
      return session.problem
    end)
    t.same(kept.actions(t.session("bare").client), {})
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
