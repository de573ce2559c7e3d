--- A diff, accepted or rejected hunk by hunk: before the agent writes, or after it wrote.

local paths = require("acp_agent.paths")
local outcome = require("acp_agent.review.outcome")
local ui = require("acp_agent.ui")
local view = require("acp_agent.review.view")

---@class acp_agent.Review
---@field session acp_agent.Session
---@field ask? acp_agent.Ask nil: the edit is made already
---@field files acp_agent.FileDiff[]
---@field at integer the file that is shown
---@field seen? number milliseconds of the clock from which on it counts as seen
---@field decided table<integer, table<integer, boolean>> by file and hunk
local Review = {}
Review.__index = Review
for name, method in pairs(view.methods) do
  Review[name] = method
end

local M = { of_buffer = view.of_buffer }

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
---@param unasked? boolean the user did not ask for it, and may be typing
---@return acp_agent.Review?
function M.of_ask(ask, unasked)
  if ask.done or not ask:has_diff() then
    return nil
  end
  local open = ask.review
  if open and open:focus() then
    return open
  end
  ask.review = start(ask.session, ask.diffs, ask)
  local grace = require("acp_agent.config").current.review.grace
  ask.review.seen = unasked and vim.uv.hrtime() / 1e6 + grace or 0
  ask.on_answer = function()
    ask.review:close()
  end
  ask.on_dismiss = function()
    ask.review:close()
    ui.notify("the agent withdrew its request")
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

--- Whether a key may have been pressed before what it would decide was seen.
---@private
---@return boolean
function Review:is_too_new()
  return self.seen ~= nil and vim.uv.hrtime() / 1e6 < self.seen
end

--- Decides about the hunk at the cursor.
---@param accepted boolean
function Review:decide(accepted)
  if self:is_too_new() then
    return
  end
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
  if self:is_too_new() then
    return
  end
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
    return ui.notify("the agent no longer waits for this answer", "warning")
  end
  if verdict == "none" then
    return ask:choose_kind("reject_once")
  end
  local allow = ask:option("allow_once")
  if verdict == "all" then
    return ask:choose_kind("allow_once")
  elseif not allow then
    ui.notify(
      "the agent offers no “allow once”, so parts cannot be accepted: choose for all of it",
      "warning"
    )
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
    local path, why = paths.resolve(file.path, self.session.roots)
    local problem = why and why.message
      or outcome.take_back(path --[[@as string]], file.old, file.new, self.decided[index])
    if problem then
      self.session:notice("not undone: " .. problem, "warning")
    end
  end
  outcome.tell(self.session, self.files, self.decided)
end

return M
