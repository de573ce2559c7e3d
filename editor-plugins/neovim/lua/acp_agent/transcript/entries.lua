--- What a transcript is made of: blocks of a few lines here, messages in `stream`, calls in `tools`.
---
--- Only the agent's own words are Markdown (`chat/markdown`). All else is indented by four columns or more
--- or begins with a bar, so that it opens no block of it, and an open fence ends with its message.

local json = require("acp_agent.json")
local inert = require("acp_agent.inert")
local utf8 = require("acp_agent.utf8")

---@alias acp_agent.StyledLine [string, string?] text, highlight group

---@class acp_agent.Entry
---@field kind string
---@field index integer its place in the transcript, from 1
---@field lead boolean whether an empty line stands before it
---@field compact boolean whether it may follow its like without one
---@field folds boolean whether all but its first line can be folded away
---@field shown string[] its lines as they were last flushed
---@field render fun(self): string[], integer? all lines, and the first that may differ from `shown`
---@field marks fun(self): acp_agent.Mark[]?, integer? those from a row on (0 by default), counted
---  from it; nil: those that are set are right
---@field is_open fun(self): boolean not folded, as it asks something; its first line says so too, so
---  that the fold is looked at again when that changes
---@field close? fun(self) no more pieces come

local M = {
  INDENT = "    ",
  TEXT_LIMIT = 65536, -- bytes of a notice, a plan or a summary that are shown
  LINE_LIMIT = 8000, -- bytes; a longer line is broken, since drawing one takes as long as it is
}

--- The text of a content block; what is no text is named.
---@param block any a ContentBlock
---@return string
function M.content_text(block)
  local kind = json.string(block, "type")
  if kind == "text" then
    return json.string(block, "text") or ""
  elseif kind == "resource_link" then
    local name = json.string(block, "title") or json.string(block, "name") or ""
    return ("[%s](%s)"):format(name, json.string(block, "uri") or "")
  elseif kind == "resource" then
    local resource = json.table(block, "resource")
    local text = json.string(resource, "text")
    return text or ("[%s]"):format(json.string(resource, "uri") or "a resource")
  elseif kind == "image" or kind == "audio" then
    local data = json.string(block, "data") or ""
    return ("[%s, %s, %d kB]"):format(kind, json.string(block, "mimeType") or "", #data * 3 / 4096)
  elseif kind then
    return ("[%s]"):format(kind)
  end
  return ""
end

--- Breaks what is too long to be drawn.
---@param lines string[]
---@param line string
---@param indent string
function M.push(lines, line, indent)
  local at, before = 1, ""
  while #line - at >= M.LINE_LIMIT - #before do
    local head = utf8.head(line:sub(at, at + M.LINE_LIMIT), M.LINE_LIMIT - #before)
    lines[#lines + 1] = before .. head
    at, before = at + #head, indent
  end
  lines[#lines + 1] = before .. line:sub(at)
end

---@class acp_agent.BlockEntry : acp_agent.Entry
local Block = {}
Block.__index = Block

--- A few lines that are replaced as a whole.
---@param kind string
---@return acp_agent.BlockEntry
function M.block(kind)
  return setmetatable({ kind = kind, folds = kind == "compaction", styled = {} }, Block)
end

---@param styled acp_agent.StyledLine[]
function Block:set(styled)
  self.styled = styled
end

---@return string[] lines
function Block:render()
  local lines = {}
  if self.lead then
    lines[1] = ""
  end
  for _, line in ipairs(self.styled) do
    M.push(lines, M.INDENT .. line[1], M.INDENT)
  end
  return lines
end

---@return acp_agent.Mark[]
function Block:marks()
  return M.styled_marks(self.styled, self.lead and 1 or 0)
end

---@return boolean
function Block:is_open()
  return false
end

--- Marks for lines that each have one group.
---@param styled acp_agent.StyledLine[]
---@param first integer the row of the first
---@return acp_agent.Mark[]
function M.styled_marks(styled, first)
  local marks = {}
  local row = first
  for _, line in ipairs(styled) do
    if line[2] then
      marks[#marks + 1] = { row = row, group = line[2], whole = line.whole }
    end
    row = row + math.max(1, math.ceil(#line[1] / M.LINE_LIMIT))
  end
  return marks
end

local SEVERITY = {
  info = { "ℹ", "AcpAgentNotice" },
  warning = { "⚠", "AcpAgentWarning" },
  error = { "✗", "AcpAgentError" },
}

--- The lines of a text, inert; of an endless one the beginning.
---@param text string
---@return string[]
local function lines_of(text)
  if #text > M.TEXT_LIMIT then
    text = utf8.head(text, M.TEXT_LIMIT) .. "…"
  end
  return vim.split(inert.text(text), "\n", { plain = true })
end

---@param text string
---@param severity? string
---@return acp_agent.BlockEntry
function M.notice(text, severity)
  local icon, group = unpack(SEVERITY[severity] or SEVERITY.info)
  local entry = M.block("notice")
  local styled = {}
  for index, line in ipairs(lines_of(text)) do
    styled[index] = { (index == 1 and icon .. " " or "  ") .. line, group }
  end
  entry:set(styled)
  return entry
end

local STEPS = {
  completed = { "✓", "AcpAgentPlanDone" },
  in_progress = { "▸", "AcpAgentPlanActive" },
  pending = { "·", "AcpAgentPlanPending" },
}

---@param plan table a Plan or one of PlanUpdateContent
---@return acp_agent.StyledLine[]
function M.plan_lines(plan)
  local styled = { { "Plan", "AcpAgentPlan" } }
  for _, step in ipairs(json.objects(plan, "entries") or {}) do
    local icon, group = unpack(STEPS[json.string(step, "status")] or STEPS.pending)
    local urgent = json.string(step, "priority") == "high" and " !" or ""
    local text = inert.line(json.string(step, "content"))
    styled[#styled + 1] = { ("  %s %s%s"):format(icon, text, urgent), group }
  end
  local text = json.string(plan, "content") or json.string(plan, "uri")
  if text then
    for _, line in ipairs(lines_of(text)) do
      styled[#styled + 1] = { "  " .. line, "AcpAgentPlanPending" }
    end
  end
  return styled
end

---@param entry { status: string, summary: string, problem?: string }
---@return acp_agent.StyledLine[]
function M.compaction_lines(entry)
  local words = {
    in_progress = "Summarizing the conversation …",
    completed = "The conversation was summarized",
    failed = "The conversation could not be summarized",
    cancelled = "The summary was cancelled",
  }
  local text = words[entry.status] or ("Summing up: " .. inert.line(entry.status))
  if entry.problem then
    text = text .. ": " .. inert.line(entry.problem)
  end
  local styled = { { "⇣ " .. text, entry.problem and "AcpAgentError" or "AcpAgentNotice" } }
  if entry.summary ~= "" then
    for _, line in ipairs(lines_of(entry.summary)) do
      styled[#styled + 1] = { "  " .. line, "AcpAgentDim" }
    end
  end
  return styled
end

return M
