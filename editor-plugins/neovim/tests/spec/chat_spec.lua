-- The chat's buffers and windows, and what the actions do there.
local it = ...
local t = require("helpers")
local chats = require("acp_agent.chat")

local function lines(buf)
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end

--- A session whose chat is open.
local function opened(conduct, settings)
  vim.cmd("silent! tabonly | silent! only | enew")
  local session, folder = t.session(conduct, settings)
  local chat = chats.get(session)
  chat:open()
  return chat, session, folder
end

--- Everything drawn.
local function drawn(chat)
  chat:draw()
  return table.concat(lines(chat.buf), "\n")
end

it("the buffer has what the transcript has, however it was updated", function()
  local chat, session = opened()
  for _, prompt in ipairs({ "markdown", "hostile", "tools 20", "flood 300", "run echo x", "line 20000" }) do
    t.turn(session, prompt)
  end
  drawn(chat)
  t.same(lines(chat.buf), session.transcript:lines())
  t.same(vim.bo[chat.buf].modifiable, false)
end)

it("a buffer that was deleted is made again with all that was said", function()
  local chat, session = opened()
  t.turn(session, "markdown")
  local before = drawn(chat)
  local old = { chat.buf, chat.prompt.buf }
  vim.api.nvim_buf_delete(chat.prompt.buf, { force = true })
  t.wait(function()
    return not vim.api.nvim_buf_is_valid(old[1])
  end, "the end of the other buffer")
  require("acp_agent").run("open_chat")
  local again = chats.of_session(session)
  assert(again ~= chat and again:window() and again.prompt:window())
  t.same(drawn(again), before)
  t.turn(session, "more words")
  t.has(drawn(again), "more words")
end)

it("the end is followed by a window that shows it, and no other", function()
  local chat, session = opened()
  local win = chat:window()
  t.turn(session, "flood 500")
  drawn(chat)
  t.same(vim.api.nvim_win_get_cursor(win)[1], vim.api.nvim_buf_line_count(chat.buf))
  vim.api.nvim_win_set_cursor(win, { 3, 0 })
  t.turn(session, "flood 500")
  drawn(chat)
  t.same(vim.api.nvim_win_get_cursor(win)[1], 3)
end)

it("all of a call is folded, whatever its state and its output came to", function()
  local chat, session = opened()
  local win = chat:window()
  local call = { sessionUpdate = "tool_call", toolCallId = "c", title = "Call" }
  for _, step in ipairs({ { 3 }, { 3, "in_progress" }, { 3, "failed" }, { 5 }, { 2 }, { 2, "completed" } }) do
    local text = ("line\n"):rep(step[1])
    call.content = { { type = "content", content = { type = "text", text = text } } }
    call.status = step[2]
    session:update(call)
    drawn(chat)
    local folded = vim.api.nvim_win_call(win, function()
      return { vim.fn.foldclosed(1), vim.fn.foldclosedend(1) }
    end)
    t.same(folded, { 1, 1 + step[1] }, step[2])
    session:update({ sessionUpdate = "agent_message_chunk", content = { type = "text", text = "And.\n" } })
  end
end)

it("the chat has no modeline, no undo and no file", function()
  vim.o.modeline = true
  local chat = opened()
  for _, buf in ipairs({ chat.buf, chat.prompt.buf }) do
    t.same({ vim.bo[buf].modeline, vim.bo[buf].buftype, vim.bo[buf].swapfile }, { false, "nofile", false })
  end
  t.same(vim.bo[chat.buf].undolevels, -1)
end)

it("hiding and showing leaves the conversation and the code's window alone", function()
  local chat, session = opened()
  t.same(#vim.api.nvim_tabpage_list_wins(0), 3)
  require("acp_agent").run("toggle")
  t.same({ #vim.api.nvim_tabpage_list_wins(0), chat:window() }, { 1, nil })
  t.turn(session, "said in the dark")
  require("acp_agent").run("toggle")
  t.has(drawn(chat), "said in the dark")
  t.same(vim.api.nvim_get_current_buf(), chat.prompt.buf)
end)

it("what was written stays where it could not be sent, and comes back by a key", function()
  local chat, session = opened()
  chat.prompt:set("first")
  chat.prompt:send()
  t.wait(function()
    return not session.turn
  end)
  t.same(chat.prompt:text(), "")
  chat.prompt:set("draft")
  chat.prompt:recall(-1)
  t.same(chat.prompt:text(), "first")
  chat.prompt:recall(1)
  t.same(chat.prompt:text(), "draft")
  session.client:finish("gone", true)
  chat.prompt:send()
  t.same(chat.prompt:text(), "draft")
  t.has(t.told[#t.told], "gone")
end)

it("numbers answer while something is asked, and count otherwise", function()
  local chat, session, folder = opened(nil, { review = { auto_open = false } })
  t.write(folder .. "/a", "old\n")
  t.turn(session, "flood 100")
  drawn(chat)
  vim.api.nvim_set_current_win(chat:window())
  vim.api.nvim_feedkeys("gg3j", "x", false)
  t.same(vim.api.nvim_win_get_cursor(0)[1], 4)
  session:submit("edit " .. folder .. "/a", { { type = "text", text = "edit " .. folder .. "/a" } })
  t.wait(function()
    return session.asks[1]
  end)
  vim.api.nvim_feedkeys("3", "x", false)
  t.wait(function()
    return not session.turn
  end)
  t.has(t.text(session), '"optionId": "no"')
end)

it("a question out of sight is notified", function()
  local chat, session, folder = opened()
  chat:close()
  t.write(folder .. "/a", "old\n")
  session:submit("edit", { { type = "text", text = "edit " .. folder .. "/a" } })
  t.wait(function()
    return (t.told[#t.told] or ""):find("Strange agent asks: Edit it", 1, true)
  end)
  require("acp_agent").run("allow")
  t.wait(function()
    return not session.turn
  end)
  t.same(t.read(folder .. "/a"), "new\n")
end)

it("no message is so long that a running agent would wait for a key", function()
  opened()
  require("acp_agent.ui").notify(("a long reason "):rep(50), "error")
  assert(vim.api.nvim_strwidth(t.told[#t.told]) <= vim.v.echospace, t.told[#t.told])
  require("acp_agent.client").stop_all()
  require("acp_agent.ui").notify(("a long reason "):rep(30), "error")
  assert(#t.told[#t.told] > 400)
end)

it("an agent that takes its time to start is told of", function()
  t.session("bare") -- ends the others
  require("acp_agent").setup({ agents = { slow = { command = t.agent("silent") } }, agent = "slow" })
  local target = require("acp_agent.actions.target")
  local patience = target.PATIENCE
  target.PATIENCE = 50
  t.told = {}
  require("acp_agent").run("new")
  t.wait(function()
    return (t.told[1] or ""):find("starting slow …", 1, true)
  end)
  target.PATIENCE = patience
  require("acp_agent.client").running.slow:finish("enough", true)
end)

it("a key goes to the file of a call, at its line, in the code's window", function()
  local chat, session, folder = opened()
  t.write(folder .. "/b.txt", "1\n2\n3\n")
  local update = { sessionUpdate = "tool_call", toolCallId = "x", title = "Look" }
  update.locations = { { path = folder .. "/b.txt", line = 3 }, { path = "term://touch hacked" } }
  session:update(update)
  drawn(chat)
  vim.api.nvim_set_current_win(chat:window())
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  require("acp_agent").run("open")
  t.same(vim.api.nvim_buf_get_name(0), folder .. "/b.txt")
  t.same(vim.api.nvim_win_get_cursor(0)[1], 3)
  require("acp_agent.navigate").open("term://touch hacked")
  t.has(t.told[#t.told], "no such file: term://touch hacked")
  require("acp_agent.navigate").open("/etc")
  t.has(t.told[#t.told], "no such file: /etc")
end)

it("all of a call can be seen, whatever the chat leaves out", function()
  local chat, session = opened()
  local update =
    { sessionUpdate = "tool_call", toolCallId = "x", title = "Look", rawInput = { a = "\27[31m" } }
  local text = ("line\n"):rep(1000)
  update.content = { { type = "content", content = { type = "text", text = text } } }
  session:update(update)
  drawn(chat)
  vim.api.nvim_set_current_win(chat:window())
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  require("acp_agent").run("details")
  t.same(select(2, table.concat(lines(0), "\n"):gsub("\n  line", "")), 1000)
  assert(not table.concat(lines(0)):find("\27"))
  vim.cmd("close")
end)

it("a conversation that is open is shown and not opened twice", function()
  local chat, session = opened()
  local got
  require("acp_agent.sessions").load(session.client, { id = session.id, cwd = session.cwd }, function(_, one)
    got = one
  end)
  t.same(got == session and chats.get(got) == chat, true)
end)

it("several agents run side by side, each with its conversation", function()
  local _, session = opened()
  require("acp_agent").setup({
    agents = { strange = { command = t.agent() }, other = { command = t.agent("bare") } },
    agent = "strange",
  })
  require("acp_agent").run("new", { "other" })
  local other = t.wait(function()
    local last = require("acp_agent.session").last
    return last and last.client.name == "other" and last
  end)
  t.turn(other, "to the other")
  t.turn(session, "to the first")
  t.has(t.text(other), "to the other")
  assert(not t.text(session):find("to the other"))
end)

it("a login in a terminal runs the agent's own program with the words that it named", function()
  local _, session, folder = opened()
  session.client.settings =
    { command = { "sh", "-c", 'echo "$1 $WHO" > ' .. folder .. "/in", "agent" }, env = {} }
  session.client.auth_methods = {
    { id = "t", name = "In a terminal", type = "terminal", args = { "--login" }, env = { WHO = "me" } },
  }
  t.answers = { "In a terminal" }
  local result
  require("acp_agent.auth").login(session.client, function(problem)
    result = problem or "done"
  end)
  t.wait(function()
    return result
  end)
  vim.cmd.stopinsert()
  t.same({ result, t.read(folder .. "/in") }, { "done", "--login me\n" })
end)

require("acp_agent.client").stop_all()
