--- The chat of a session: a buffer with the transcript, below it one for the prompt, beside the code.

local config = require("acp_agent.config")
local markdown = require("acp_agent.chat.markdown")
local names = require("acp_agent.chat.names")
local windows = require("acp_agent.chat.windows")

---@class acp_agent.Chat
---@field session acp_agent.Session
---@field buf integer the transcript
---@field prompt acp_agent.Prompt
---@field private canvas acp_agent.Canvas
local Chat = {}
Chat.__index = Chat
for name, method in pairs(require("acp_agent.chat.drawing")) do
  Chat[name] = method
end

local M = {}

---@type table<integer, acp_agent.Chat> by the number of either buffer
local by_buffer = {}

--- The chat that a buffer belongs to.
---@param buf integer
---@return acp_agent.Chat?
function M.of_buffer(buf)
  return by_buffer[buf]
end

--- The chat of a session, if it has one.
---@param session acp_agent.Session
---@return acp_agent.Chat?
function M.of_session(session)
  for _, chat in pairs(by_buffer) do
    if chat.session == session then
      return chat
    end
  end
  return nil
end

--- A buffer of the chat's: a scratch buffer, so no file, no swap file and no modeline.
---@param name string
---@param filetype string
---@return integer
local function scratch(name, filetype)
  local buf = vim.api.nvim_create_buf(false, true)
  pcall(vim.api.nvim_buf_set_name, buf, name)
  vim.bo[buf].filetype = filetype
  return buf
end

--- The chat of a session, made where it has none.
---@param session acp_agent.Session
---@return acp_agent.Chat
function M.get(session)
  local existing = M.of_session(session)
  if existing then
    return existing
  end
  local name = names.new(session.client.name)
  local self = setmetatable({ session = session }, Chat)
  self.buf = scratch(name, "acp-agent")
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].undolevels = -1
  markdown.start_transcript(self.buf)
  local prompt_buf = scratch(name .. "/prompt", "acp-agent-prompt")
  markdown.start(prompt_buf)
  self.prompt = require("acp_agent.chat.prompt").new(self, prompt_buf)
  session.transcript:begin_again() -- whatever another buffer of it had
  self.canvas = require("acp_agent.chat.canvas").new(self.buf, session.transcript)
  by_buffer[self.buf], by_buffer[prompt_buf] = self, self
  local keys = require("acp_agent.keys")
  keys.set(self.buf, "chat")
  keys.set(prompt_buf, "prompt")
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = self.buf,
    callback = function()
      windows.dress_transcript(vim.api.nvim_get_current_win())
    end,
  })
  windows.keep_share(self.buf)
  windows.on_close(self.buf, function(tab)
    if not windows.of(self.buf, tab) then
      self.prompt:close(tab) -- alone it is of no use
    end
  end)
  vim.api.nvim_create_autocmd({ "BufDelete", "BufWipeout" }, {
    callback = function(event)
      if event.buf == self.buf or event.buf == prompt_buf then
        self:forget()
        return true
      end
    end,
  })
  session.on_change = function(what, detail)
    self:changed(what, detail)
  end
  self:changed("transcript")
  self:changed("state")
  return self
end

---@private
---@param what string
---@param detail any
function Chat:changed(what, detail)
  if what == "transcript" then
    self:draw_soon()
  elseif what == "returned" then
    self.prompt:give_back(detail)
  else
    if what == "ask" and detail then
      self:asked(detail)
    end
    self:show_state_soon()
  end
end

--- The agent asks for permission: the diff is opened where the user is looking, else they are told.
---@private
---@param ask acp_agent.Ask
function Chat:asked(ask)
  local here = M.of_buffer(vim.api.nvim_get_current_buf()) == self
  local busy = vim.api.nvim_get_mode().mode:sub(1, 1) ~= "n"
  self:draw()
  if here and not busy and ask:has_diff() and config.current.review.auto_open then
    vim.schedule(function()
      if not ask.done then
        require("acp_agent.review").of_ask(ask, true)
      end
    end)
  elseif config.current.permission.notify and (not self:window() or not here) then
    require("acp_agent.ui").notify(
      ("%s asks: %s (:AcpAgent allow, reject, review)"):format(self.session.client.title, ask.title),
      "warning"
    )
  end
end

--- The window that shows the transcript in this tab.
---@return integer?
function Chat:window()
  return windows.of(self.buf)
end

--- 'foldexpr' of the chat: thoughts and tool calls are folded.
---@return string|integer
function M.foldexpr()
  local chat = by_buffer[vim.api.nvim_get_current_buf()]
  return chat and chat.session.transcript:fold_level(vim.v.lnum - 1) or 0
end

--- Shows the chat in this tab, and the cursor in its prompt.
---@param stay? boolean leave the cursor where it is
function Chat:open(stay)
  local before = vim.api.nvim_get_current_win()
  local win = self:window()
  if not win then
    win = self:make_window()
    windows.dress_transcript(win)
    self:draw()
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(self.buf), 0 })
  end
  self.prompt:open(win)
  self:show_state_soon()
  if stay and vim.api.nvim_win_is_valid(before) then
    vim.api.nvim_set_current_win(before)
  else
    self.prompt:focus()
  end
  require("acp_agent.session").last = self.session
end

---@private
---@return integer
function Chat:make_window()
  -- Another chat in this tab gives up its place.
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local other = by_buffer[vim.api.nvim_win_get_buf(win)]
    if other and other ~= self and vim.api.nvim_win_get_buf(win) == other.buf then
      other.prompt:close()
      vim.api.nvim_win_set_buf(win, self.buf)
      return win
    end
  end
  local prompt = self.prompt:window()
  return prompt and windows.open_above(self.buf, prompt) or windows.open_transcript(self.buf)
end

--- Hides the chat in this tab; the session goes on.
function Chat:close()
  self.prompt:close()
  local win = self:window()
  if win then
    if #windows.standing() + #vim.api.nvim_list_tabpages() == 2 then -- the last window
      vim.cmd.enew()
    else
      vim.api.nvim_win_close(win, true)
    end
  end
end

--- The user deleted one of its buffers: the other goes too, and the next `get` makes new ones.
---@private
function Chat:forget()
  local buffers = { self.prompt.buf, self.buf }
  by_buffer[self.buf], by_buffer[self.prompt.buf] = nil, nil
  self.session.on_change = function() end
  vim.schedule(function()
    for _, buf in ipairs(buffers) do
      if vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
    end
  end)
end

--- Ends the chat: its session is closed, its buffers are gone.
function Chat:delete()
  self.session:close()
  self:forget()
end

--- The entry under the cursor of a window that shows the transcript.
---@return acp_agent.Entry? entry
---@return integer offset the cursor's row within it, from 0
function Chat:under_cursor()
  local win = self:window()
  if not win then
    return nil, 0
  end
  return self.session.transcript:at(vim.api.nvim_win_get_cursor(win)[1] - 1)
end

--- The permission that keys answer: that of the call under the cursor, else the oldest.
---@return acp_agent.Ask?
function Chat:ask()
  local entry = self:under_cursor()
  for _, ask in ipairs(self.session.asks) do
    if entry and entry.kind == "tool" and entry.id == ask.call then
      return ask
    end
  end
  return self.session.asks[1]
end

--- Puts the cursor on the next entry, or the one before.
---@param step 1|-1
function Chat:move(step)
  local win = self:window()
  local entry = self:under_cursor()
  if not win or not entry then
    return
  end
  local target = self.session.transcript.entries[entry.index + step]
  if target then
    local row = self.session.transcript:rows(target)
    vim.api.nvim_win_set_cursor(win, { row + (target.lead and 2 or 1), 0 })
  end
end

return M
