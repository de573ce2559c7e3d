-- Diffs decided hunk by hunk, in the windows in which they are shown.
local it = ...
local t = require("helpers")
local review = require("acp_agent.review")

local OLD = "old 1\nkeep\nkeep\nkeep\nkeep\nkeep\nkeep\nold 2\n"

--- A turn that asks about an edit of two hunks, up to the question.
---@return acp_agent.Session, acp_agent.Ask, string path
local function asked(through, conduct)
  local session, folder = t.session(conduct)
  local path = folder .. "/a.txt"
  t.write(path, OLD)
  local text = ("edit %s%s"):format(path, through and (" " .. through) or "")
  t.say(session, text)
  return session, t.question(session), path
end

--- Rejects the first hunk and accepts the second, by the keys.
local function reject_then_accept(ask)
  local open = review.of_ask(ask)
  t.same(vim.api.nvim_get_current_win(), open.right)
  vim.api.nvim_feedkeys("r", "x", false)
  t.same(vim.api.nvim_win_get_cursor(0), { 8, 0 }, "the next hunk")
  vim.api.nvim_feedkeys("a", "x", false)
  t.same(#vim.api.nvim_list_tabpages(), 1, "tabs")
end

local PARTLY = OLD:gsub("old 2", "new 2")

it("a rejected hunk is left out of what the agent writes through the editor", function()
  local session, ask, path = asked()
  reject_then_accept(ask)
  t.over(session)
  local text = t.text(session)
  t.has(text, '{"optionId": "yes", "outcome": "selected"}')
  t.same(t.read(path), PARTLY)
end)

it("a byte order mark that a diff leaves out is no change, and stays", function()
  local session, ask, path = asked()
  t.write(path, "\239\187\191" .. OLD)
  vim.fn.bufload(vim.fn.bufadd(path))
  reject_then_accept(ask)
  assert(not (t.told[#t.told] or ""):find("changed since", 1, true), t.told[#t.told])
  t.over(session)
  t.same(t.read(path), "\239\187\191" .. PARTLY)
end)

it("a rejected hunk is taken back from what the agent wrote to the disk by itself", function()
  local session, ask, path = asked("disk")
  reject_then_accept(ask)
  t.over(session)
  t.same(t.read(path), PARTLY)
end)

it("an agent that cannot be steered is told of the rejected hunk with the next prompt", function()
  local session, ask = asked(nil, "queue")
  reject_then_accept(ask)
  t.over(session)
  t.turn(session, "next")
  local text = t.text(session)
  t.has(text, "I rejected these hunks of your edit")
  t.has(text, "+new 1")
  assert(not text:find("+new 2\\n", 1, true))
  t.turn(session, "once more")
  t.same(#session.notes, 0)
end)

it("all hunks accepted is a yes, none is a no", function()
  local session, ask, path = asked()
  review.of_ask(ask)
  vim.api.nvim_feedkeys("A", "x", false)
  t.over(session)
  t.same(t.read(path), (OLD:gsub("old", "new")))
  session, ask, path = asked()
  review.of_ask(ask)
  vim.api.nvim_feedkeys("R", "x", false)
  t.over(session)
  t.has(t.text(session), '"optionId": "no"')
  t.same(t.read(path), OLD)
end)

it("a window of the review that was closed is there again for the next file", function()
  local session = t.session()
  local content = {}
  for index, name in ipairs({ "a", "b" }) do
    content[index] = { type = "diff", path = session.cwd .. "/" .. name, oldText = "1\n", newText = "2\n" }
  end
  for _, closed in ipairs({ "left", "right" }) do
    local open = review.of_edit(session, require("acp_agent.transcript.tools").diffs(content))
    vim.api.nvim_win_close(open[closed], true)
    vim.api.nvim_feedkeys("a", "x", false)
    t.same(vim.api.nvim_win_get_buf(open.left), open.old)
    t.same(vim.api.nvim_win_get_buf(open.right), open.new)
    t.same(#vim.api.nvim_tabpage_list_wins(0), 2)
    vim.api.nvim_feedkeys("a", "x", false)
    t.same(#vim.api.nvim_list_tabpages(), 1, closed)
  end
end)

it("an answer that is given elsewhere closes the review", function()
  for _, answer in ipairs({ "allow", "reject" }) do
    local session, ask = asked()
    review.of_ask(ask)
    require("acp_agent").run(answer)
    t.same({ ask.done, #vim.api.nvim_list_tabpages() }, { true, 1 }, answer)
    t.over(session)
  end
end)

it("leaving the review leaves the question open", function()
  local session, ask = asked()
  review.of_ask(ask)
  vim.api.nvim_feedkeys("rq", "x", false)
  t.same({ ask.done, #session.asks, #vim.api.nvim_list_tabpages() }, { false, 1, 1 })
  review.of_ask(ask)
  t.same(review.of_ask(ask), ask.review, "opened twice")
  t.same(ask.review.decided, { { false } }, "what was decided")
  session:cancel()
  t.over(session)
  t.same(#vim.api.nvim_list_tabpages(), 1, "the review of a cancelled turn")
end)

it("keys that were typed before a diff opened by itself decide nothing in it", function()
  local session, ask, path = asked()
  local open = review.of_ask(ask, true)
  vim.api.nvim_feedkeys("aArR", "x", false)
  t.same({ ask.done, open.decided }, { false, { {} } })
  t.wait(function()
    vim.api.nvim_feedkeys("A", "x", false)
    return ask.done
  end, "the end of the grace")
  t.over(session)
  t.has(t.read(path), "new 1\n")
end)

it("a diff for a file that changed meanwhile is shown as that", function()
  local session, ask, path = asked()
  t.write(path, "something else\n")
  local open = review.of_ask(ask)
  t.has(t.told[#t.told], "a.txt changed since this diff was made")
  t.has(vim.wo[open.right].winbar, "the file changed since")
  vim.api.nvim_feedkeys("A", "x", false)
  t.over(session)
  t.has(t.text(session), "changed since its diff was shown to the user")
  t.same(t.read(path), "something else\n")
end)

it("what the agent was not let write is not said to be in the file", function()
  local session, ask, path = asked()
  t.write(path, "something else\n")
  reject_then_accept(ask)
  t.over(session)
  t.has(t.text(session), "changed since its diff was shown to the user")
  t.same(t.text(session):find("still in the file", 1, true), nil)
  t.same(t.read(path), "something else\n")
end)

it("an edit that was made is taken back in part, around what changed since", function()
  local session, ask, path = asked()
  ask:choose_kind("allow_once")
  t.over(session)
  t.write(path, t.read(path):gsub("keep\nkeep\n", "keep\nchanged since\nkeep\n", 1))
  review.of_edit(session, ask.diffs)
  vim.api.nvim_feedkeys("ra", "x", false)
  t.has(t.read(path), "old 1\nkeep\nchanged since\nkeep\n")
  t.has(t.read(path), "new 2\n")
end)

it("a hunk that changed since is not taken back, and that is told", function()
  local session, ask, path = asked()
  ask:choose_kind("allow_once")
  t.over(session)
  t.write(path, (t.read(path):gsub("new 1", "newer")))
  review.of_edit(session, ask.diffs)
  vim.api.nvim_feedkeys("R", "x", false)
  t.has(t.read(path), "newer\n")
  t.has(t.text(session), "not undone: " .. path .. " changed since the diff was made")
end)

it("several files are reviewed one after the other, new ones as well", function()
  local session, folder = t.session()
  local request = vim.json.encode({
    toolCall = {
      toolCallId = "many",
      title = "Many files",
      content = {
        { type = "diff", path = folder .. "/a", oldText = "x\n", newText = "y\n" },
        { type = "diff", path = folder .. "/b", oldText = vim.NIL, newText = "new\n" },
        { type = "diff", path = folder .. "/same", oldText = "s\n", newText = "s\n" },
      },
    },
    options = {
      { optionId = "y", name = "Yes", kind = "allow_once" },
      { optionId = "n", name = "No", kind = "reject_once" },
    },
  })
  local text = "call session/request_permission " .. request
  t.say(session, text)
  local ask = t.question(session)
  local open = review.of_ask(ask)
  vim.api.nvim_feedkeys("a", "x", false)
  t.same(open.at, 2)
  t.has(vim.wo[open.left].winbar, "new file")
  vim.api.nvim_feedkeys("r", "x", false)
  t.over(session)
  t.has(t.text(session), '"optionId": "y"')
  t.same(session.edits, {})
end)

it("where no part can be accepted the user chooses for all of it", function()
  local session = t.session()
  local request = vim.json.encode({
    toolCall = {
      toolCallId = "c",
      content = { { type = "diff", path = "/a", oldText = OLD, newText = PARTLY:gsub("old", "NEW") } },
    },
    options = {
      { optionId = "ever", name = "Always", kind = "allow_always" },
      { optionId = "n", name = "No", kind = "reject_once" },
    },
  })
  local text = "call session/request_permission " .. request
  t.say(session, text)
  t.answers = { "No" }
  review.of_ask(t.question(session))
  vim.api.nvim_feedkeys("ra", "x", false)
  t.over(session)
  t.has(t.text(session), '"optionId": "n"')
end)

it("a question without options, or without a call, is an error and no question", function()
  local session = t.session()
  t.turn(session, 'call session/request_permission {"toolCall": {"toolCallId": "c"}, "options": []}')
  t.turn(
    session,
    'call session/request_permission {"options": [{"optionId": "a", "name": "A", "kind": "allow_once"}]}'
  )
  t.same(select(2, t.text(session):gsub('"code": %-32602', "")), 2)
  t.same(#session.asks, 0)
end)

it("text of an agent in the review has no modeline and no escape code", function()
  local session = t.session()
  local open = review.of_edit(session, {
    {
      path = "/x/%{1+1}\27.lua",
      old = "",
      new = "\27[31mred\nvim: set ft=python:\n",
      created = true,
      hunks = require("acp_agent.diff").hunks("", "\27[31mred\nvim: set ft=python:\n"),
    },
  })
  t.same(vim.api.nvim_buf_get_lines(open.new, 0, -1, false), { "␛[31mred", "vim: set ft=python:" })
  t.same(vim.bo[open.new].filetype, "")
  local shown = vim.api.nvim_eval_statusline(vim.wo[open.left].winbar, { maxwidth = 200 }).str
  t.has(shown, "/x/%{1+1}␛.lua")
  open:close()
end)

require("acp_agent.client").stop_all()
