--- Where the user writes: a buffer and a window of its own, below the transcript.

local config = require("acp_agent.config")
local context = require("acp_agent.context")
local inert = require("acp_agent.inert")
local windows = require("acp_agent.chat.windows")

---@class acp_agent.Prompt
---@field chat acp_agent.Chat
---@field buf integer
---@field private history string[]
---@field private at integer the place in the history that is shown; one behind it: what is being written
local Prompt = {}
Prompt.__index = Prompt

local M = {}

---@param chat acp_agent.Chat
---@param buf integer
---@return acp_agent.Prompt
function M.new(chat, buf)
  local self = setmetatable({ chat = chat, buf = buf, history = {}, at = 1, draft = "" }, Prompt)
  vim.bo[buf].omnifunc = "v:lua.require'acp_agent.completion'.omnifunc"
  vim.bo[buf].textwidth = 0
  if config.current.prompt.auto_complete then
    local completion = require("acp_agent.completion")
    completion.prepare(buf)
    vim.api.nvim_create_autocmd("TextChangedI", { buffer = buf, callback = completion.while_typing })
  end
  return self
end

--- The window that shows it in this tab.
---@return integer?
function Prompt:window()
  return windows.of(self.buf)
end

--- Shows it below the window of the transcript.
---@param above integer
function Prompt:open(above)
  if self:window() then
    return
  end
  windows.open_prompt(self.buf, above)
  self:show_state()
end

--- Closes its window; what is written stays.
---@param tab? integer in this tab by default
function Prompt:close(tab)
  local win = windows.of(self.buf, tab)
  if win and #windows.standing(tab) > 1 then
    vim.api.nvim_win_close(win, true)
  end
end

--- Puts the cursor into it.
function Prompt:focus()
  local win = self:window()
  if win then
    vim.api.nvim_set_current_win(win)
  end
end

--- What is written.
---@return string
function Prompt:text()
  return table.concat(vim.api.nvim_buf_get_lines(self.buf, 0, -1, false), "\n")
end

--- Writes something else.
---@param text string
function Prompt:set(text)
  local lines = vim.split(text, "\n", { plain = true })
  vim.api.nvim_buf_set_lines(self.buf, 0, -1, false, lines)
  local win = self:window()
  if win then
    vim.api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
  end
end

--- Text that was not sent after all stands before what is being written.
---@param text string
function Prompt:give_back(text)
  local current = self:text()
  self:set(current == "" and text or (text .. "\n\n" .. current))
end

--- Sends what is written; it stays where the agent cannot be reached.
---@param queue? boolean wait for the end of the turn
function Prompt:send(queue)
  local text = vim.trim(self:text())
  if text == "" then
    return
  end
  local session = self.chat.session
  local problem = session:submit(text, context.blocks(text, session), queue)
  if problem then
    return require("acp_agent.ui").notify(problem, "error")
  end
  session.context = {}
  if self.history[#self.history] ~= text then
    self.history[#self.history + 1] = text
  end
  self.at, self.draft = #self.history + 1, ""
  self:set("")
  self:show_state()
  local win = self.chat:window()
  if win then -- to see what comes of it
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(self.chat.buf), 0 })
  end
end

--- Shows an earlier prompt, or a later one.
---@param step 1|-1
function Prompt:recall(step)
  local at = self.at + step
  if at < 1 or at > #self.history + 1 then
    return
  end
  if self.at == #self.history + 1 then
    self.draft = self:text()
  end
  self.at = at
  self:set(self.history[at] or self.draft)
end

--- What goes with the prompt and what the keys do, above it.
function Prompt:show_state()
  local session = self.chat.session
  local parts = {}
  local keys = config.current.keys.prompt
  local send = keys.send and (keys.send .. " sends") or ""
  if keys.send_insert then
    local also = send == "" and keys.send_insert .. " sends" or ", " .. keys.send_insert
    send = send .. also .. " in Insert mode"
  end
  if session.problem then
    parts[1] = session.problem
  elseif session.turn then
    parts[1] = keys.cancel and (keys.cancel .. " cancels") or "working"
  end
  if #session.context > 0 then
    local labels = vim.tbl_map(function(item)
      return context.label(item, session.cwd)
    end, session.context)
    parts[#parts + 1] = "with " .. table.concat(labels, ", ")
  end
  if not session.problem then
    parts[#parts + 1] = send
  end
  -- What does not fit is left out at the end.
  local bar = " " .. inert.statusline(table.concat(parts, " · "), 200) .. "%<"
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.wo[win][0].winbar = bar
  end
end

return M
