--- A transcript in a buffer: its operations carried out, the windows that show its end kept there.

local M = {}

local namespace = vim.api.nvim_create_namespace("acp_agent.chat")

---@class acp_agent.Canvas
---@field buf integer
---@field transcript acp_agent.Transcript
---@field private empty boolean whether the buffer has only the line that every buffer has
local Canvas = {}
Canvas.__index = Canvas

---@param buf integer
---@param transcript acp_agent.Transcript
---@return acp_agent.Canvas
function M.new(buf, transcript)
  return setmetatable({ buf = buf, transcript = transcript, empty = true }, Canvas)
end

--- Has the folds of a window looked at again. As long as Neovim is in Insert mode, be it in another
--- window, it looks at none, nor at what it missed when that is over; within a command of Normal mode it
--- does, and one in a window of its own leaves the cursor of whoever is typing where it is.
---@param win integer
---@param first integer row
---@param last integer row behind the last
local function fold_while_typing(win, first, last)
  local command = ("<Cmd>lua vim._foldupdate(%d, %d, %d)<CR>"):format(win, first, last)
  vim.api.nvim_win_call(win, function()
    vim.cmd.normal({ vim.keycode(command), bang = true })
  end)
end

--- Does something to the lines that windows show without any of it being concealed meanwhile: Neovim 0.11
--- asks with every change which lines are, and all the Markdown is parsed anew for the answer.
---@param windows integer[]
---@param change fun()
local function unconcealed(windows, change)
  local before = {}
  for _, win in ipairs(windows) do
    before[win] = vim.wo[win].conceallevel
    vim.wo[win][0].conceallevel = 0
  end
  change()
  for win, level in pairs(before) do
    vim.wo[win][0].conceallevel = level
  end
end

---@private
---@param row integer
---@param mark acp_agent.Mark
function Canvas:mark(row, mark)
  local line = row + mark.row
  local options = { priority = 200, strict = false }
  if mark.note then
    options.virt_text = { { "  " .. mark.note, "AcpAgentNote" } }
  end
  if mark.group then
    options.hl_group = mark.group
    if mark.end_col then
      options.end_col = mark.end_col
    else
      options.end_row, options.end_col = line + 1, 0
      options.hl_eol = mark.whole or false
    end
  end
  pcall(vim.api.nvim_buf_set_extmark, self.buf, namespace, line, mark.col or 0, options)
end

---@private
---@param operation acp_agent.Operation
function Canvas:carry_out(operation)
  local buf, row = self.buf, operation.row
  if operation.kind == "text" then
    -- Of one line: one that adds lines would close the fold that it ends (Neovim 0.10).
    vim.api.nvim_buf_set_text(buf, row, operation.col, row, operation.end_col, operation.lines)
  elseif operation.kind == "line" then
    -- nvim_buf_set_text would take the last line out of a fold that begins here (Neovim 0.11).
    vim.fn.setbufline(buf, row + 1, operation.lines)
  elseif operation.kind == "lines" then
    local last = self.empty and -1 or row + operation.count
    self.empty = false
    vim.api.nvim_buf_set_lines(buf, row, last, false, operation.lines)
  elseif operation.kind == "marks" then
    vim.api.nvim_buf_clear_namespace(buf, namespace, row, row + operation.count)
    for _, mark in ipairs(operation.marks) do
      self:mark(row, mark)
    end
  end
end

--- Brings the buffer up to date.
function Canvas:draw()
  local buf = self.buf
  if not vim.api.nvim_buf_is_loaded(buf) or not self.transcript:is_dirty() then
    return
  end
  local last = vim.api.nvim_buf_line_count(buf)
  local windows = vim.fn.win_findbuf(buf)
  local following = vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_cursor(win)[1] >= last
  end, windows)
  local first = math.huge
  vim.bo[buf].modifiable = true
  unconcealed(windows, function()
    self.transcript:flush(function(operation)
      first = math.min(first, operation.row)
      self:carry_out(operation)
    end)
  end)
  vim.bo[buf].modifiable = false
  last = vim.api.nvim_buf_line_count(buf)
  if vim.api.nvim_get_mode().mode:match("^[iR]") and first < last then
    for _, win in ipairs(windows) do
      fold_while_typing(win, first, last)
    end
  end
  for _, win in ipairs(following) do
    vim.api.nvim_win_set_cursor(win, { last, 0 })
  end
end

return M
