--- Tool calls in a transcript: a line that says what, and below it, folded, what came of it.

local json = require("acp_agent.json")
local inert = require("acp_agent.inert")
local utf8 = require("acp_agent.utf8")
local diff = require("acp_agent.diff")
local entries = require("acp_agent.transcript.entries")

---@class acp_agent.Location
---@field path string
---@field line? integer from 1

---@class acp_agent.FileDiff
---@field path string
---@field old string "" for a new file
---@field new string
---@field created boolean whether the file is new
---@field hunks acp_agent.Hunk[]

---@class acp_agent.ToolEntry : acp_agent.Entry
---@field id string
---@field title string
---@field tool_kind string
---@field status string
---@field content table[]
---@field diffs acp_agent.FileDiff[]
---@field locations acp_agent.Location[]
---@field terminals string[] ids of what it shows
---@field question? acp_agent.StyledLine[]
local Tool = {}
Tool.__index = Tool

local M = {}

M.DIFF_LINES = 300 -- of a diff that are written out in the chat
M.TEXT_LIMIT = 256 * 1024 -- bytes of a text of which lines are shown

M.ICONS = {
  pending = "○",
  in_progress = "●",
  completed = "✓",
  failed = "✗",
  cancelled = "⊘",
  asking = "?",
}

local GROUPS = {
  pending = "AcpAgentToolPending",
  in_progress = "AcpAgentToolRunning",
  completed = "AcpAgentToolDone",
  failed = "AcpAgentToolFailed",
  cancelled = "AcpAgentToolPending",
  asking = "AcpAgentAsk",
}

---@param id string
---@param transcript acp_agent.Transcript
---@return acp_agent.ToolEntry
function M.entry(id, transcript)
  return setmetatable({
    kind = "tool",
    id = id,
    title = "",
    tool_kind = "other",
    status = "pending",
    content = {},
    diffs = {},
    locations = {},
    terminals = {},
    folds = true,
    compact = true,
    transcript = transcript,
  }, Tool)
end

--- The diffs among the content of a call.
---@param content table[] of ToolCallContent
---@return acp_agent.FileDiff[]
function M.diffs(content)
  local found = {}
  for _, item in ipairs(content) do
    local path, new = json.string(item, "path"), json.string(item, "newText")
    if item.type == "diff" and path and new then
      local old = json.string(item, "oldText")
      found[#found + 1] = {
        path = path,
        old = old or "",
        new = new,
        created = old == nil,
        hunks = diff.hunks(old or "", new),
      }
    end
  end
  return found
end

--- Changes what an update names (ToolCall, ToolCallUpdate).
---@param update table
function Tool:update(update)
  self.title = json.string(update, "title") or self.title
  self.tool_kind = json.string(update, "kind") or self.tool_kind
  self.status = json.string(update, "status") or self.status
  local content = json.objects(update, "content")
  if content then
    self.content = content
    self.diffs = M.diffs(content)
    self.terminals = {}
    for _, item in ipairs(content) do
      if item.type == "terminal" and json.string(item, "terminalId") then
        table.insert(self.terminals, item.terminalId)
      end
    end
    self.body = nil
  end
  local locations = json.objects(update, "locations")
  if locations then
    self.locations = {}
    for _, location in ipairs(locations) do
      if json.string(location, "path") then
        table.insert(self.locations, { path = location.path, line = json.number(location, "line") })
      end
    end
    self.body = nil
  end
  for _, key in ipairs({ "rawInput", "rawOutput" }) do
    if update[key] ~= nil and update[key] ~= vim.NIL then
      self[key] = update[key]
      self.body = nil
    end
  end
end

---@private
---@param path string
---@return string
function Tool:shown_path(path)
  local root = self.transcript.options.root
  if root and vim.startswith(path, root .. "/") then
    path = path:sub(#root + 2)
  end
  return inert.line(path)
end

--- Adds lines of text, the end of them where there are too many.
---@param body acp_agent.StyledLine[]
---@param text string
---@param group string
---@param limit integer
local function add_text(body, text, group, limit)
  local lines = vim.split(text, "\n", { plain = true })
  while #lines > 0 and lines[#lines] == "" do
    lines[#lines] = nil
  end
  local first = 1
  if #lines > limit then
    first = #lines - limit + 1
    body[#body + 1] = { ("… %d lines above"):format(first - 1), "AcpAgentDim" }
  end
  for i = first, #lines do
    body[#body + 1] = { lines[i], group }
  end
end

--- Text of a result; a fence around all of it is left out, as it is shown as code anyway.
---@param text string
---@return string
local function unfenced(text)
  local mark = text:match("^(```+)[^\n`]*\n")
  if mark and text:sub(-#mark - 1) == "\n" .. mark then
    return (text:gsub("^[^\n]*\n", ""):sub(1, -#mark - 2))
  end
  return text
end

---@private
---@param body acp_agent.StyledLine[]
---@param file acp_agent.FileDiff
function Tool:add_diff(body, file)
  local added, removed = diff.count(file.hunks)
  local name = self:shown_path(file.path) .. (file.created and " (new)" or "")
  body[#body + 1] = { ("%s  +%d −%d"):format(name, added, removed), "AcpAgentPath" }
  local groups = {
    header = "AcpAgentDiffHeader",
    add = "AcpAgentDiffAdd",
    delete = "AcpAgentDiffDelete",
    context = "AcpAgentOutput",
  }
  local lines, more = diff.unified(file.old, file.new, M.DIFF_LINES)
  for _, line in ipairs(lines) do
    local whole = line.kind == "add" or line.kind == "delete"
    body[#body + 1] = { inert.line(line.text, 2000), groups[line.kind], whole = whole }
  end
  if more > 0 then
    body[#body + 1] = { ("… %d lines more"):format(more), "AcpAgentDim" }
  end
end

--- What the content has but the outputs of terminals, which change all the time.
---@private
---@return acp_agent.StyledLine[]
function Tool:fixed_body()
  local body = {}
  local limit = self.transcript.options.max_output_lines
  if #self.diffs == 0 then
    for _, location in ipairs(self.locations) do
      local line = location.line and (":%d"):format(location.line) or ""
      body[#body + 1] = { self:shown_path(location.path) .. line, "AcpAgentPath" }
    end
  end
  for _, file in ipairs(self.diffs) do
    self:add_diff(body, file)
  end
  for _, item in ipairs(self.content) do
    if item.type == "content" then
      local text = unfenced(entries.content_text(item.content))
      if #text > M.TEXT_LIMIT then
        text = utf8.tail(text, M.TEXT_LIMIT)
        body[#body + 1] = { "… the beginning is left out", "AcpAgentDim" }
      end
      add_text(body, inert.text(text), "AcpAgentOutput", limit)
    end
  end
  return body
end

---@private
---@return acp_agent.StyledLine[]
function Tool:styled()
  self.body = self.body or self:fixed_body()
  local body = self.body
  if #self.terminals > 0 or self.question then
    body = vim.list_extend({}, body)
  end
  for _, id in ipairs(self.terminals) do
    local terminal = self.transcript.outputs[id]
    if terminal then
      local text = terminal.output:shown()
      if terminal.output.truncated then
        body[#body + 1] = { "… the beginning is left out", "AcpAgentDim" }
      end
      add_text(body, text, "AcpAgentOutput", self.transcript.options.max_output_lines)
      if terminal.exit then
        body[#body + 1] = { "[" .. inert.line(terminal.exit) .. "]", "AcpAgentDim" }
      end
    end
  end
  if self.question then
    vim.list_extend(body, self.question)
  end
  return body
end

---@return string[] lines
function Tool:render()
  local status = self.question and "asking" or self.status
  local icons = self.transcript.options.icons or {}
  local icon = icons[status] or M.ICONS[status] or M.ICONS.pending
  local title = inert.line(self.title)
  local header = ("%s%s %s"):format(entries.INDENT, icon, title ~= "" and title or self.tool_kind)
  local styled = self:styled()
  if #self.diffs > 0 then
    local added, removed = 0, 0
    for _, file in ipairs(self.diffs) do
      local more, less = diff.count(file.hunks)
      added, removed = added + more, removed + less
    end
    header = ("%s  +%d −%d"):format(header, added, removed)
  elseif #styled > 0 and not self.question then
    header = ("%s  (%d)"):format(header, #styled)
  end
  self.drawn = { group = GROUPS[status] or GROUPS.pending, header = header, styled = styled }
  local lines = {}
  if self.lead then
    lines[1] = ""
  end
  lines[#lines + 1] = header
  local indent = entries.INDENT .. "  "
  for _, line in ipairs(styled) do
    entries.push(lines, indent .. line[1], indent)
  end
  return lines
end

---@return acp_agent.Mark[]
function Tool:marks()
  local first = self.lead and 1 or 0
  local marks = entries.styled_marks(self.drawn.styled, first + 1)
  local icon = #entries.INDENT + #(self.drawn.header:match("^%s*(%S+)") or "")
  table.insert(marks, 1, { row = first, col = 0, end_col = icon, group = self.drawn.group })
  table.insert(marks, 2, { row = first, col = icon, group = "AcpAgentTool" })
  return marks
end

---@return boolean
function Tool:is_open()
  return self.question ~= nil
end

return M
