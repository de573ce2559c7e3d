--- A review on the screen: a tab with what is on the left, what is to be on the right.

local files = require("acp_agent.files")
local paths = require("acp_agent.paths")
local inert = require("acp_agent.inert")
local ui = require("acp_agent.ui")
local utf8 = require("acp_agent.utf8")

local namespace = vim.api.nvim_create_namespace("acp_agent.review")

---@class acp_agent.Review
local Review = {}

local M = { methods = Review }

---@type table<integer, acp_agent.Review> by buffer
local by_buffer = {}

--- The review that a buffer belongs to.
---@param buf integer
---@return acp_agent.Review?
function M.of_buffer(buf)
  return by_buffer[buf]
end

---@param name string
---@param text string
---@param path string
---@return integer
local function scratch(name, text, path)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  local lines = vim.split(inert.text(text), "\n", { plain = true })
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  pcall(vim.api.nvim_buf_set_name, buf, name)
  -- Highlighting without 'filetype': nothing else shall take this for a file.
  local filetype = #path <= paths.LIMIT and vim.filetype.match({ filename = path }) or nil
  local language = filetype and vim.treesitter.language.get_lang(filetype)
  if language and not pcall(vim.treesitter.start, buf, language) then
    vim.bo[buf].syntax = filetype
  end
  return buf
end

--- Shows both buffers, in windows that are there or, where the user closed one, in a new one.
---@private
function Review:open_windows()
  local function is_open(win)
    return win and vim.api.nvim_win_is_valid(win)
  end
  if not is_open(self.left) and not is_open(self.right) then
    vim.cmd("tab split")
    self.tab = vim.api.nvim_get_current_tabpage()
    self.left = vim.api.nvim_get_current_win()
  end
  if is_open(self.left) then
    vim.api.nvim_win_set_buf(self.left, self.old)
  else
    self.left = vim.api.nvim_open_win(self.old, true, { split = "left", win = self.right })
  end
  if is_open(self.right) then
    vim.api.nvim_win_set_buf(self.right, self.new)
  else
    self.right = vim.api.nvim_open_win(self.new, true, { split = "right", win = self.left })
  end
end

local shown = 0

---@private
function Review:show()
  local file = self.files[self.at]
  shown = shown + 1
  local path = inert.line(file.path)
  local name = ("acp-agent://review/%d/%s"):format(shown, vim.fs.basename(path))
  self.old = scratch(name .. "/before", file.old, file.path)
  self.new = scratch(name .. "/after", file.new, file.path)
  self:open_windows()
  for _, win in ipairs({ self.left, self.right }) do
    vim.wo[win][0].winfixwidth = false
    vim.wo[win][0].number = true
    vim.wo[win][0].signcolumn = "yes"
    vim.wo[win][0].conceallevel = 0
    vim.api.nvim_win_call(win, function()
      vim.cmd("diffthis")
    end)
  end
  for _, buf in ipairs({ self.old, self.new }) do
    by_buffer[buf] = self
    require("acp_agent.keys").set(buf, "review")
    vim.api.nvim_create_autocmd("BufWipeout", {
      buffer = buf,
      callback = function()
        by_buffer[buf] = nil
      end,
    })
  end
  local _, current = utf8.split_mark(self:current())
  local _, expected = utf8.split_mark(self.ask and file.old or file.new)
  self.changed = current ~= expected
  if self.changed then
    ui.notify(vim.fs.basename(path) .. " changed since this diff was made", "warning")
  end
  vim.api.nvim_set_current_win(self.right)
  self:draw()
  self:to_hunk(1)
  if #file.hunks == 0 then
    self:next_file()
  end
end

--- The file as it is now; "" where there is none.
---@private
---@return string
function Review:current()
  local path = paths.resolve(self.files[self.at].path, self.session.roots)
  return path and files.read(path) or ""
end

local STATES = {
  open = { "● open", "AcpAgentHunkOpen" },
  accepted = { "✓ accepted", "AcpAgentHunkAccepted" },
  rejected = { "✗ rejected", "AcpAgentHunkRejected" },
}

---@private
function Review:draw()
  if not vim.api.nvim_buf_is_valid(self.new) then
    return -- the user closed its window; the next file has one again
  end
  local file, decided = self.files[self.at], self.decided[self.at]
  vim.api.nvim_buf_clear_namespace(self.new, namespace, 0, -1)
  local count = vim.api.nvim_buf_line_count(self.new)
  for index, hunk in ipairs(file.hunks) do
    local state = decided[index] == nil and "open" or decided[index] and "accepted" or "rejected"
    local row = math.min(math.max(hunk.new_first, 1), count) - 1
    local text = ("  %d/%d %s"):format(index, #file.hunks, STATES[state][1])
    vim.api.nvim_buf_set_extmark(self.new, namespace, row, 0, {
      virt_text = { { text, STATES[state][2] } },
      sign_text = STATES[state][1]:match("^%S+"), -- seen where the line is too long for the text
      sign_hl_group = STATES[state][2],
    })
  end
  local keys = require("acp_agent.config").current.keys.review
  local help = {}
  for _, one in ipairs({
    { "accept_hunk", "accept" },
    { "reject_hunk", "reject" },
    { "accept_all", "accept all" },
    { "reject_all", "reject all" },
    { "close_review", "leave" },
  }) do
    if keys[one[1]] then
      help[#help + 1] = keys[one[1]] .. " " .. one[2]
    end
  end
  local which = #self.files > 1 and ("file %d/%d, "):format(self.at, #self.files) or ""
  local warning = self.changed and "⚠ the file changed since · " or ""
  local path = inert.statusline(file.path, 120)
  if vim.api.nvim_win_is_valid(self.left) and vim.api.nvim_win_is_valid(self.right) then
    vim.wo[self.left][0].winbar = " " .. (file.created and "new file: %<" or "before: %<") .. path
    local state = self.ask and "asked for" or "made"
    local text = (" %s%s%s"):format(warning, which, table.concat(help, " · "))
    vim.wo[self.right][0].winbar = inert.statusline(text, 300) .. "%<  (" .. state .. ")"
  end
end

--- Puts the cursor into it; false where its tab is gone.
---@return boolean
function Review:focus()
  if self.tab and vim.api.nvim_tabpage_is_valid(self.tab) and vim.api.nvim_win_is_valid(self.right) then
    vim.api.nvim_set_current_win(self.right)
    return true
  end
  return false
end

--- Leaves it; what is asked about stays open.
function Review:close()
  if self.tab and vim.api.nvim_tabpage_is_valid(self.tab) then
    local number = vim.api.nvim_tabpage_get_number(self.tab)
    if #vim.api.nvim_list_tabpages() > 1 then
      vim.cmd(("%dtabclose"):format(number))
    end
  end
  self.tab, self.left, self.right = nil, nil, nil
end

return M
