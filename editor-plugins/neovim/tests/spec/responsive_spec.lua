-- However much an agent sends, the editor answers.
local it = ...
local t = require("helpers")

--- Runs a turn; for how long the editor worked without a pause at most, in milliseconds of the processor.
local function longest_block(session, text)
  t.say(session, text)
  local worst, before = 0, os.clock()
  t.wait(function()
    local now = os.clock()
    worst, before = math.max(worst, now - before), now
    return not session.turn
  end, "its end", 60000)
  return worst * 1e3
end

local function opened()
  vim.cmd("silent! tabonly | silent! only | enew")
  local chat = require("acp_agent.chat").get(t.session())
  chat:open()
  return chat, chat.session
end

it("an endless output leaves the editor responsive and its memory bounded", function()
  local chat, session = opened()
  local worst = longest_block(session, "run head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 80")
  chat:draw()
  local kept = collectgarbage("count") / 1024
  io.stdout:write(("  (50 MB of output: %d MB kept, at most %d ms at a time)\n"):format(kept, worst))
  assert(worst < 2000, worst)
  assert(kept < 300, kept)
  t.has(t.text(session), '"truncated": true')
end)

it("megabytes in every field leave the editor responsive, wherever they are shown", function()
  local chat, session = opened()
  local worst = longest_block(session, "huge 1000000")
  local start = os.clock()
  chat:draw()
  local call = session.transcript.tools.huge
  require("acp_agent.navigate").details(call)
  require("acp_agent.review").of_edit(session, call.diffs):close()
  for _, action in ipairs({ "commands", "mode", "options", "open" }) do
    require("acp_agent").run(action)
  end
  assert(#require("acp_agent").statusline() < 400)
  local shown = (os.clock() - start) * 1e3
  io.stdout:write(("  (a megabyte a field: at most %d ms at a time, shown in %d ms)\n"):format(worst, shown))
  assert(worst < 2000, worst)
  assert(shown < 2500, shown)
  t.has(t.text(session), "the end")
end)

it("what comes of a thousand calls that are shown already is shown at once", function()
  local chat, session = opened()
  local function update(members)
    for call = 1, 1000 do
      local one = { sessionUpdate = "tool_call", toolCallId = "call-" .. call, title = "Call" }
      session:update(vim.tbl_extend("error", one, members))
    end
  end
  update({ status = "pending" })
  chat:draw()
  update({ content = { { type = "content", content = { type = "text", text = "one\ntwo" } } } })
  local start = os.clock()
  chat:draw()
  local took = os.clock() - start
  assert(took < 2, took)
  t.same(vim.api.nvim_buf_line_count(chat.buf), 3000)
end)

require("acp_agent.client").stop_all()
