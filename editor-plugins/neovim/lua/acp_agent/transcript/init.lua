--- A conversation as lines, highlights and folds. Pure: it knows no window and no buffer.
---
--- Updates of the protocol go in (`apply`), in any number; `flush` then gives the operations that
--- bring a buffer to the present state, each entry touched once however many updates it had. After
--- every operation the model and the buffer have the same lines, so folds can be asked for at any time.

local entries = require("acp_agent.transcript.entries")
local flush = require("acp_agent.transcript.flush")
local stream = require("acp_agent.transcript.stream")
local tools = require("acp_agent.transcript.tools")

---@class acp_agent.TranscriptOptions
---@field root? string paths below it are shown relative to it
---@field max_output_lines? integer lines shown of an output; 400 by default
---@field icons? table<string, string>

---@class acp_agent.Transcript
---@field entries acp_agent.Entry[]
---@field tools table<string, acp_agent.ToolEntry> by the id of the call
local Transcript = {}
Transcript.__index = Transcript
for name, method in pairs(require("acp_agent.transcript.updates")) do
  Transcript[name] = method
end

local M = {}

---@param options? acp_agent.TranscriptOptions
---@return acp_agent.Transcript
function M.new(options)
  options = options or {}
  local self = setmetatable({
    options = vim.tbl_extend("force", { max_output_lines = 400 }, options),
    entries = {},
    tools = {},
    outputs = {}, -- outputs of terminals, by id
    shown_in = {}, -- terminal id -> the calls that show it
    plans = {},
    compactions = {},
    dirty = {},
  }, Transcript)
  self.places = require("acp_agent.transcript.places").new(self.entries)
  return self
end

---@private
---@param entry acp_agent.Entry
---@return acp_agent.Entry
function Transcript:add(entry)
  local last = self.entries[#self.entries]
  if last and last.close then
    last:close()
    self:touch(last)
  end
  local compact = last and entry.compact and last.compact
  entry.lead = last ~= nil and not compact
  entry.index = #self.entries + 1
  entry.shown = {}
  self.entries[entry.index] = entry
  self:touch(entry)
  return entry
end

---@private
---@param entry acp_agent.Entry
function Transcript:touch(entry)
  self.dirty[entry.index] = true
end

--- The last entry, if pieces of this message go on in it.
---@private
---@param kind string
---@param id string?
---@return acp_agent.StreamEntry?
function Transcript:current(kind, id)
  local last = self.entries[#self.entries]
  if last and last.kind == kind and not last.closed and (not id or not last.id or last.id == id) then
    last.id = last.id or id
    return last
  end
  return nil
end

---@private
---@param id string
---@return acp_agent.ToolEntry
function Transcript:tool(id)
  local entry = self.tools[id]
  if not entry then
    entry = self:add(tools.entry(id, self)) --[[@as acp_agent.ToolEntry]]
    self.tools[id] = entry
  end
  return entry
end

---@private
---@param id string
---@return { output: acp_agent.Output, exit?: string }
function Transcript:terminal(id)
  local terminal = self.outputs[id]
  if not terminal then
    terminal = { output = require("acp_agent.ansi").output() }
    self.outputs[id] = terminal
  end
  return terminal
end

---@private
---@param id string
function Transcript:touch_terminal(id)
  for call in pairs(self.shown_in[id] or {}) do
    self:touch(self.tools[call])
  end
end

--- Adds to what a terminal shows; any bytes.
---@param id string
---@param data string
function Transcript:terminal_output(id, data)
  self:terminal(id).output:add(data)
  self:touch_terminal(id)
end

--- Says how the command of a terminal ended.
---@param id string
---@param code number?
---@param signal string?
function Transcript:terminal_exit(id, code, signal)
  local how = signal and ("ended by " .. signal) or code and ("exit code %d"):format(code)
  self:terminal(id).exit = how or "ended"
  self:touch_terminal(id)
end

--- The user said something.
---@param text string
---@param note? string such as "queued"
---@return acp_agent.StreamEntry entry for `note`
function Transcript:said(text, note)
  self.echo = text
  self.plans[""] = nil -- the plan of the next turn is shown where it is made
  local entry = self:add(stream.entry("user", nil, self.options)) --[[@as acp_agent.StreamEntry]]
  entry:append(text)
  entry.closed = true
  entry:note(note)
  return entry
end

--- Changes the note beside something that the user said.
---@param entry acp_agent.StreamEntry
---@param note? string
function Transcript:note(entry, note)
  entry:note(note)
  self:touch(entry)
end

--- Something that the user should know and that is nobody's message.
---@param text string
---@param severity? "info"|"warning"|"error"
function Transcript:notice(text, severity)
  self:add(entries.notice(text, severity))
end

--- A call waits for the user's decision; nil: no longer.
---@param id string
---@param lines? acp_agent.StyledLine[]
function Transcript:asking(id, lines)
  local entry = self:tool(id)
  entry.question = lines
  self:touch(entry)
end

--- The calls that did not end, which will not any more.
---@param status string
function Transcript:end_calls(status)
  for _, entry in pairs(self.tools) do
    if entry.status == "pending" or entry.status == "in_progress" or entry.question then
      entry.question = nil
      if entry.status ~= "completed" and entry.status ~= "failed" then
        entry.status = status
      end
      self:touch(entry)
    end
  end
end

--- Whether anything changed since the last flush.
---@return boolean
function Transcript:is_dirty()
  return next(self.dirty) ~= nil
end

--- Gives what brings a buffer up to date, in the order in which it must be done.
---
--- A buffer starts with no line at all; one of Neovim has an empty line instead, at its end.
---@param emit fun(operation: acp_agent.Operation)
function Transcript:flush(emit)
  local indices = vim.tbl_keys(self.dirty)
  table.sort(indices)
  self.dirty = {}
  for _, index in ipairs(indices) do
    flush(self.entries[index], self.places, emit)
  end
end

--- Forgets what was flushed: the next flush fills a buffer that has nothing.
function Transcript:begin_again()
  for _, entry in ipairs(self.entries) do
    entry.shown, entry.marked = {}, 0
    self:touch(entry)
  end
  self.places:moved(0)
end

--- All lines as they were last flushed.
---@return string[]
function Transcript:lines()
  local all = {}
  for _, entry in ipairs(self.entries) do
    vim.list_extend(all, entry.shown)
  end
  return all
end

--- The entry that a row belongs to.
---@param row integer from 0
---@return acp_agent.Entry? entry
---@return integer offset the row within it, from 0
function Transcript:at(row)
  return self.places:at(row)
end

--- The rows of an entry.
---@param entry acp_agent.Entry
---@return integer first from 0
---@return integer count
function Transcript:rows(entry)
  return self.places:start(entry.index), #entry.shown
end

--- How deep a row is folded, in the words of 'foldexpr'.
---@param row integer from 0
---@return string|integer
function Transcript:fold_level(row)
  local entry, offset = self:at(row)
  if not entry or not entry.folds or entry:is_open() then
    return 0
  end
  local header = entry.lead and 1 or 0
  if offset < header or #entry.shown - header < 2 then
    return 0
  end
  return offset == header and ">1" or 1
end

return M
