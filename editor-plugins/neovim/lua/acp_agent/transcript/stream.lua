--- A message that grows by pieces: what the user said, what the agent says, what the model thinks.

local entries = require("acp_agent.transcript.entries")
local inert = require("acp_agent.inert")
local utf8 = require("acp_agent.utf8")

---@class acp_agent.StreamEntry : acp_agent.Entry
---@field id string?
---@field text string[] pieces that are not rendered yet
---@field closed boolean
local Stream = {}
Stream.__index = Stream

local M = {
  PIECE_LIMIT = 1024 * 1024, -- bytes of one piece that are shown
}

local PREFIX = { user = "▍ ", agent = "", thought = "      " }
local GROUP = { user = "AcpAgentUser", thought = "AcpAgentThought" }

---@param kind "user"|"agent"|"thought"
---@param id string?
---@param options acp_agent.TranscriptOptions
---@return acp_agent.StreamEntry
function M.entry(kind, id, options)
  local icon = options.icons and options.icons.thought or "∴"
  return setmetatable({
    kind = kind,
    id = id,
    prefix = PREFIX[kind],
    header = kind == "thought" and (entries.INDENT .. icon .. " Thought") or nil,
    folds = kind == "thought",
    compact = kind == "thought",
    pieces = {},
    held = "",
    rendered = nil,
    closed = false,
    marked = 0,
  }, Stream)
end

--- Adds a piece; it costs nothing until the next flush.
---@param text string
function Stream:append(text)
  if #text > M.PIECE_LIMIT then
    local head = utf8.head(text, M.PIECE_LIMIT)
    text = ("%s\n… %d bytes more are not shown\n"):format(head, #text - #head)
  end
  self.pieces[#self.pieces + 1] = text
end

--- Sets what stands beside the first line.
---@param note? string
function Stream:note(note)
  self.noted = note and inert.line(note) or nil
  self.remark = true
end

--- No more pieces come: an open fence is ended.
function Stream:close()
  if self.closed then
    return
  end
  self.closed = true
  if self.kind == "agent" then
    self.ending = true
  end
end

--- The fence that is open at the end of Markdown, if any.
---@param lines string[]
---@return string?
local function open_fence(lines)
  local open
  for _, line in ipairs(lines) do
    local mark = line:match("^ ? ? ?(```+)[^`]*$") or line:match("^ ? ? ?(~~~+)")
    if mark then
      if not open then
        open = mark
      elseif mark:sub(1, 1) == open:sub(1, 1) and #mark >= #open and line:match("^%s*[`~]+%s*$") then
        open = nil
      end
    end
  end
  return open
end

---@return string[] lines
---@return integer? from
function Stream:render()
  local lines = self.rendered
  if not lines then
    lines = {}
    if self.lead then
      lines[1] = ""
    end
    if self.header then
      lines[#lines + 1] = self.header
    end
    lines[#lines + 1] = self.prefix
    self.rendered = lines
  end
  local from = #lines
  local raw = self.held .. table.concat(self.pieces)
  self.pieces, self.held = {}, ""
  if raw:sub(-1) == "\r" and not self.closed then
    raw, self.held = raw:sub(1, -2), "\r"
  end
  if raw ~= "" then
    local last = table.remove(lines)
    local pieces = vim.split(inert.text(raw), "\n", { plain = true })
    entries.push(lines, last .. pieces[1], self.prefix)
    for i = 2, #pieces do
      entries.push(lines, self.prefix .. pieces[i], self.prefix)
    end
  end
  if self.ending then
    self.ending = nil
    while #lines > 1 and lines[#lines] == "" do -- the next entry brings its own empty line
      lines[#lines] = nil
    end
    from = math.min(from, #lines + 1)
    local fence = open_fence(lines)
    if fence then
      lines[#lines + 1] = fence
    end
  end
  return lines, math.max(1, from)
end

---@return acp_agent.Mark[]?
---@return integer? from
function Stream:marks()
  local group = GROUP[self.kind]
  if not self.remark and (not group or #self.shown == self.marked) then
    return nil
  end
  local lead = self.lead and 1 or 0
  local from = self.remark and lead or math.max(lead, self.marked - 1)
  local marks = {}
  for row = from, group and #self.shown - 1 or from do
    marks[#marks + 1] = { row = row - from, group = group }
  end
  if self.noted and marks[1] and self.remark then
    marks[1].note = self.noted
  end
  self.marked, self.remark = #self.shown, nil
  return marks, from
end

---@return boolean
function Stream:is_open()
  return false
end

return M
