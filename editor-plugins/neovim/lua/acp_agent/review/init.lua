--- A diff, accepted or rejected hunk by hunk: before the agent writes, or after it wrote.

local files = require("acp_agent.files")
local inert = require("acp_agent.inert")
local outcome = require("acp_agent.review.outcome")
local ui = require("acp_agent.ui")

local namespace = vim.api.nvim_create_namespace("acp_agent.review")

---@class acp_agent.Review
---@field session acp_agent.Session
---@field ask? acp_agent.Ask nil: the edit is made already
---@field files acp_agent.FileDiff[]
---@field at integer the file that is shown
---@field decided table<integer, table<integer, boolean>> by file and hunk
local Review = {}
Review.__index = Review

local M = {}

---@type table<integer, acp_agent.Review> by buffer
local by_buffer = {}

--- The review that a buffer belongs to.
---@param buf integer
---@return acp_agent.Review?
function M.of_buffer(buf)
  return by_buffer[buf]
end

---@param session acp_agent.Session
---@param diffs acp_agent.FileDiff[]
---@param ask? acp_agent.Ask
---@return acp_agent.Review
local function start(session, diffs, ask)
  local before = ask and ask.review
  local self = setmetatable({ session = session, files = diffs, ask = ask, at = 1 }, Review)
  self.decided = before and before.decided or {} -- what was decided before it was left
  for index in ipairs(diffs) do
    self.decided[index] = self.decided[index] or {}
  end
  self:show()
  return self
end

--- Reviews what is asked about; the answer goes to the agent when every hunk is decided.
---@param ask acp_agent.Ask
---@return acp_agent.Review?
function M.of_ask(ask)
  if ask.done or not ask:has_diff() then
    return nil
  end
  local open = ask.review
  if open and open:focus() then
    return open
  end
  ask.review = start(ask.session, ask.diffs, ask)
  ask.on_dismiss = function()
    ask.review:close()
    ui.notify("the agent took its question back")
  end
  return ask.review
end

--- Reviews an edit that was made; what is rejected is taken back.
---@param session acp_agent.Session
---@param diffs acp_agent.FileDiff[]
---@return acp_agent.Review
function M.of_edit(session, diffs)
  return start(session, diffs, nil)
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
  local filetype = vim.filetype.match({ filename = path })
  local language = filetype and vim.treesitter.language.get_lang(filetype)
  if language and not pcall(vim.treesitter.start, buf, language) then
    vim.bo[buf].syntax = filetype
  end
  return buf
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
  if not (self.tab and vim.api.nvim_tabpage_is_valid(self.tab)) then
    vim.cmd("tab split")
    self.tab = vim.api.nvim_get_current_tabpage()
    self.left = vim.api.nvim_get_current_win()
  end
  vim.api.nvim_win_set_buf(self.left, self.old)
  if self.right and vim.api.nvim_win_is_valid(self.right) then
    vim.api.nvim_win_set_buf(self.right, self.new)
  else
    self.right = vim.api.nvim_open_win(self.new, true, { split = "right", win = self.left })
  end
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
  local current = self:current()
  self.changed = current ~= (self.ask and file.old or file.new)
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
  local path = files.resolve(self.files[self.at].path, self.session.roots)
  return path and files.read(path) or ""
end

local STATES = {
  open = { "● open", "AcpAgentHunkOpen" },
  accepted = { "✓ accepted", "AcpAgentHunkAccepted" },
  rejected = { "✗ rejected", "AcpAgentHunkRejected" },
}

---@private
function Review:draw()
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

--- The hunk that the cursor is in, or nearest to.
---@private
---@return integer
function Review:hunk()
  local win = vim.api.nvim_get_current_win()
  local row = vim.api.nvim_win_get_cursor(win)[1]
  local old = vim.api.nvim_win_get_buf(win) == self.old
  local best, least = 1, math.huge
  for index, hunk in ipairs(self.files[self.at].hunks) do
    local first = old and hunk.old_first or hunk.new_first
    local last = first + math.max(old and hunk.old_count or hunk.new_count, 1) - 1
    local distance = row < first and first - row or row > last and row - last or 0
    if distance < least then
      best, least = index, distance
    end
  end
  return best
end

---@private
---@param index integer
function Review:to_hunk(index)
  local hunk = self.files[self.at].hunks[index]
  if hunk and vim.api.nvim_win_is_valid(self.right) then
    local count = vim.api.nvim_buf_line_count(self.new)
    local row = math.min(math.max(hunk.new_first, 1), count)
    vim.api.nvim_win_set_cursor(self.right, { row, 0 })
    vim.api.nvim_set_current_win(self.right)
  end
end

--- Goes to the next hunk, or the one before.
---@param step 1|-1
function Review:move(step)
  local count = #self.files[self.at].hunks
  self:to_hunk((self:hunk() - 1 + step) % math.max(count, 1) + 1)
end

--- Decides about the hunk at the cursor.
---@param accepted boolean
function Review:decide(accepted)
  local decided = self.decided[self.at]
  local hunk = self:hunk()
  decided[hunk] = accepted
  self:draw()
  for step = 1, #self.files[self.at].hunks do
    local index = (hunk - 1 + step) % #self.files[self.at].hunks + 1
    if decided[index] == nil then
      return self:to_hunk(index)
    end
  end
  self:next_file()
end

--- Decides about all hunks that are open, in all files.
---@param accepted boolean
function Review:decide_all(accepted)
  for index, file in ipairs(self.files) do
    for hunk in ipairs(file.hunks) do
      if self.decided[index][hunk] == nil then
        self.decided[index][hunk] = accepted
      end
    end
  end
  self:finish()
end

---@private
function Review:next_file()
  if self.at < #self.files then
    self.at = self.at + 1
    self:show()
  else
    self:finish()
  end
end

---@private
---@return "all"|"none"|"some"
function Review:verdict()
  local any, all = false, true
  for index, file in ipairs(self.files) do
    for hunk in ipairs(file.hunks) do
      if self.decided[index][hunk] then
        any = true
      else
        all = false
      end
    end
  end
  return all and "all" or any and "some" or "none"
end

---@private
function Review:finish()
  local verdict = self:verdict()
  self:close()
  if not self.ask then
    return self:take_back(verdict)
  end
  local ask = self.ask --[[@as acp_agent.Ask]]
  if ask.done then
    return ui.notify("the agent does not wait for this answer any more", "warning")
  end
  if verdict == "none" then
    return ask:choose_kind("reject_once")
  end
  local allow = ask:option("allow_once")
  if verdict == "all" then
    return ask:choose_kind("allow_once")
  elseif not allow then
    ui.notify("the agent offers no “allow once”, so no part can be accepted: choose for all", "warning")
    return ask:select()
  end
  ask.accepted = self.decided
  ask:choose(allow)
  outcome.tell(self.session, self.files, self.decided)
end

---@private
---@param verdict "all"|"none"|"some"
function Review:take_back(verdict)
  if verdict == "all" then
    return
  end
  for index, file in ipairs(self.files) do
    local path, why = files.resolve(file.path, self.session.roots)
    local problem = why and why.message
      or outcome.take_back(path --[[@as string]], file.old, file.new, self.decided[index])
    if problem then
      self.session:notice("not taken back: " .. problem, "warning")
    end
  end
  outcome.tell(self.session, self.files, self.decided)
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
