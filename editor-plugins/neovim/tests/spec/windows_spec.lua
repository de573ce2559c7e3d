-- The windows of the chat, whatever the user does to them.
local it = ...
local t = require("helpers")
local chats = require("acp_agent.chat")

local function opened()
  vim.cmd("silent! tabonly | silent! only | enew")
  local chat = chats.get(t.session())
  chat:open()
  return chat
end

local function windows()
  return #vim.api.nvim_tabpage_list_wins(0)
end

it("closing the chat closes its prompt as well, and what was written in it stays", function()
  local chat = opened()
  chat.prompt:set("a draft")
  vim.api.nvim_win_close(chat:window(), false)
  t.wait(function()
    return windows() == 1
  end, "the end of the prompt's window")
  chat:open()
  t.same({ windows(), chat.prompt:text() }, { 3, "a draft" })
end)

it("a prompt that was left alone stands below its chat again", function()
  local chat = opened()
  vim.cmd("only")
  vim.wait(20)
  t.same({ windows(), chat.prompt:window() }, { 1, vim.api.nvim_get_current_win() })
  chat:open()
  local layout = vim.fn.winlayout()
  t.same(layout, { "col", { { "leaf", chat:window() }, { "leaf", chat.prompt:window() } } })
end)

it("the keys that send are said above the prompt, in both modes and as they are set", function()
  local chat = opened()
  t.has(vim.wo[chat.prompt:window()].winbar, " <CR> sends, <C-s> in Insert mode%<")
  require("acp_agent").setup({ keys = { prompt = { send_insert = "<C-y>", send = false } } })
  chat.prompt:show_state()
  t.has(vim.wo[chat.prompt:window()].winbar, " <C-y> sends in Insert mode%<")
end)

it("one tab's chat is closed without the other's", function()
  local chat = opened()
  vim.cmd("tabnew")
  chat:open()
  vim.api.nvim_win_close(chat:window(), false)
  t.wait(function()
    return windows() == 1
  end, "the end of the prompt's window")
  vim.cmd("tabprevious")
  t.same(windows(), 3)
end)

it("a chat that has a tab of its own is closed with its tab", function()
  vim.cmd("silent! tabonly | silent! only | enew")
  local chat = chats.get(t.session(nil, { chat = { position = "tab" } }))
  chat:open()
  t.same(#vim.api.nvim_list_tabpages(), 2)
  require("acp_agent").run("close")
  t.same({ #vim.api.nvim_list_tabpages(), windows() }, { 1, 1 })
  chat:open()
  vim.cmd("tabonly")
  require("acp_agent").run("close")
  t.same({ windows(), vim.api.nvim_buf_get_name(0) }, { 1, "" }, "the last window of all")
end)

it("the last window of all but those that float is closed like one that is alone", function()
  local chat = opened()
  local float = vim.api.nvim_open_win(
    vim.api.nvim_create_buf(false, true),
    false,
    { relative = "editor", row = 1, col = 1, width = 5, height = 1 }
  )
  vim.api.nvim_win_close(vim.fn.win_getid(1), true)
  require("acp_agent").run("close")
  t.same(chat:window(), nil)
  t.same(vim.api.nvim_buf_get_name(0), "")
  t.same(vim.api.nvim_win_is_valid(float), true)
  vim.api.nvim_win_close(float, true)
end)

it("the help is shown where its tags were never made", function()
  opened()
  require("acp_agent").run("help")
  t.same({ vim.bo.buftype, vim.bo.filetype, vim.bo.modifiable }, { "help", "help", false })
  t.has(vim.api.nvim_buf_get_lines(0, 0, 1, false)[1], "A coding agent in Neovim")
  vim.cmd("only")
end)

it("an agent that is called as the plugin is not named twice in a message", function()
  require("acp_agent.client").stop_all()
  t.told = {}
  require("acp_agent").setup({ agents = { ["acp-agent"] = { command = { "/no/such/agent" } } } })
  require("acp_agent").run("new")
  t.has(t.told[1], "acp-agent: program not found")
  t.same(select(2, t.told[1]:gsub("acp%-agent:", "")), 1)
end)

require("acp_agent.client").stop_all()
