--- What each update of a session (`SessionUpdate`) does to a transcript.

local json = require("acp_agent.json")
local entries = require("acp_agent.transcript.entries")
local stream = require("acp_agent.transcript.stream")

---@class acp_agent.Transcript
local Transcript = {}

---@private
---@param kind "user"|"agent"|"thought"
---@param update table
function Transcript:chunk(kind, update)
  local text = entries.content_text(update.content)
  if text == "" then
    return
  end
  local id = json.string(update, "messageId")
  if kind == "user" and self.echo and not self.replaying then
    if self.echo:sub(1, #text) == text then -- said by the user and shown already
      return
    end
  end
  local entry = self:current(kind, id) or self:add(stream.entry(kind, id, self.options))
  entry:append(text)
  self:touch(entry)
end

---@private
---@param update table
function Transcript:tool_update(update)
  local id = json.string(update, "toolCallId")
  if not id then
    return
  end
  local entry = self:tool(id)
  entry:update(update)
  for _, terminal in ipairs(entry.terminals) do
    self.shown_in[terminal] = self.shown_in[terminal] or {}
    self.shown_in[terminal][id] = true
  end
  local meta = json.table(update, "_meta")
  local output = json.table(meta, "terminal_output")
  if output and json.string(output, "terminal_id") and json.string(output, "data") then
    self:terminal_output(output.terminal_id, output.data)
  end
  local exit = json.table(meta, "terminal_exit")
  if exit and json.string(exit, "terminal_id") then
    self:terminal_exit(exit.terminal_id, json.number(exit, "exit_code"), json.string(exit, "signal"))
  end
  self:touch(entry)
end

---@private
---@param update table
function Transcript:plan(update)
  local plan = json.table(update, "plan") or update
  local id = json.string(plan, "planId") or ""
  local entry = self.plans[id]
  if not entry then
    entry = self:add(entries.block("plan"))
    self.plans[id] = entry
  end
  entry:set(entries.plan_lines(plan))
  self:touch(entry)
end

---@private
---@param update table
function Transcript:plan_removed(update)
  local entry = self.plans[json.string(update, "planId") or ""]
  if entry then
    entry:set({ { "plan removed", "AcpAgentDim" } })
    self.plans[json.string(update, "planId") or ""] = nil
    self:touch(entry)
  end
end

---@private
---@param update table
---@param chunk boolean
function Transcript:compaction(update, chunk)
  local id = json.string(update, "compactionId")
  if not id then
    return
  end
  local entry = self.compactions[id]
  if not entry then
    entry = self:add(entries.block("compaction"))
    entry.status, entry.summary = "in_progress", ""
    self.compactions[id] = entry
  end
  if chunk then
    entry.summary = entry.summary .. entries.content_text(update.content)
  else
    entry.status = json.string(update, "status") or entry.status
    if json.is_null(update, "summary") then
      entry.summary = ""
    elseif json.objects(update, "summary") then
      entry.summary = table.concat(vim.tbl_map(entries.content_text, json.objects(update, "summary")))
    end
    if json.is_null(update, "error") then
      entry.problem = nil
    elseif json.table(update, "error") or json.string(update, "error") then
      entry.problem = json.string(update.error, "message") or json.string(update, "error")
    end
  end
  entry:set(entries.compaction_lines(entry))
  self:touch(entry)
end

local APPLY = {
  user_message_chunk = function(self, update)
    self:chunk("user", update)
  end,
  agent_message_chunk = function(self, update)
    self:chunk("agent", update)
  end,
  agent_thought_chunk = function(self, update)
    self:chunk("thought", update)
  end,
  tool_call = Transcript.tool_update,
  tool_call_update = Transcript.tool_update,
  plan = Transcript.plan,
  plan_update = Transcript.plan,
  plan_removed = Transcript.plan_removed,
  compaction_update = function(self, update)
    self:compaction(update, false)
  end,
  compaction_summary_chunk = function(self, update)
    self:compaction(update, true)
  end,
  notice = function(self, update)
    local description = json.string(update, "description")
    local text = (json.string(update, "title") or "") .. (description and ": " .. description or "")
    self:notice(text, json.string(update, "severity"))
  end,
}

--- Takes in an update of the session (`SessionUpdate`); those that show nothing are ignored.
---@param update table
function Transcript:apply(update)
  local apply = APPLY[json.string(update, "sessionUpdate") or ""]
  if apply then
    apply(self, update)
  end
end

return Transcript
