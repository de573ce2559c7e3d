--- What the agent asks before it does something, and how the user's answer reaches it.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")

---@class acp_agent.PermissionOption
---@field id string
---@field name string
---@field kind string allow_once, allow_always, reject_once, reject_always, or another

---@class acp_agent.Ask
---@field session acp_agent.Session
---@field call string the id of the tool call
---@field title string
---@field options acp_agent.PermissionOption[]
---@field diffs acp_agent.FileDiff[]
---@field done boolean
---@field on_answer? fun() the user answered, be it elsewhere
---@field on_dismiss? fun() nobody has to answer any more
local Ask = {}
Ask.__index = Ask

local M = {}

--- The actions that answer by the kind of an option.
M.KINDS = {
  allow = "allow_once",
  allow_always = "allow_always",
  reject = "reject_once",
  reject_always = "reject_always",
}

---@param session acp_agent.Session
---@param params table RequestPermissionRequest
---@param respond acp_agent.Respond
---@return acp_agent.Ask?
---@return string? problem
function M.new(session, params, respond)
  local call = json.table(params, "toolCall")
  local id = json.string(call, "toolCallId")
  if not id then
    return nil, "toolCall.toolCallId must be a string"
  end
  local options = {}
  for _, option in ipairs(json.objects(params, "options") or {}) do
    local option_id, name = json.string(option, "optionId"), json.string(option, "name")
    if option_id then
      local kind = json.string(option, "kind") or ""
      table.insert(options, { id = option_id, name = name or option_id, kind = kind })
    end
  end
  if #options == 0 then
    return nil, "options contains none that can be chosen"
  end
  local update = vim.tbl_extend("force", {}, call --[[@as table]])
  update.sessionUpdate = "tool_call_update"
  session.transcript:apply(update)
  local entry = session.transcript.tools[id]
  local self = {
    session = session,
    call = id,
    title = inert.line(entry.title ~= "" and entry.title or entry.tool_kind),
    options = options,
    diffs = entry.diffs,
    respond = respond,
    done = false,
  }
  return setmetatable(self, Ask)
end

--- Puts the question into the chat.
function Ask:show()
  local keys = require("acp_agent.config").current.keys.chat
  local by_kind = {}
  for action, kind in pairs(M.KINDS) do
    by_kind[kind] = keys[action] or nil
  end
  local lines = { { "Allow this?", "AcpAgentAsk" } }
  local offered = {}
  for number, option in ipairs(self.options) do
    local key = not offered[option.kind] and by_kind[option.kind]
    offered[option.kind] = true
    local name = inert.line(option.name, 200)
    local which = number <= 9 and tostring(number) or " "
    lines[#lines + 1] = {
      ("  %s%s  %s"):format(which, key and (" " .. key) or "  ", name),
      "AcpAgentAskOption",
    }
  end
  if #self.diffs > 0 and keys.review then
    local text = ("    %s  Review the diff, hunk by hunk"):format(keys.review)
    lines[#lines + 1] = { text, "AcpAgentAskOption" }
  end
  self.session.transcript:asking(self.call, lines)
end

--- Answers with an option.
---@param option acp_agent.PermissionOption
function Ask:choose(option)
  if self.done then
    return
  end
  self.done = true
  self.session.transcript:asking(self.call, nil)
  if self.on_answer then
    self.on_answer()
  end
  if option.kind == "allow_once" or option.kind == "allow_always" then
    require("acp_agent.review.outcome").allowed(self)
  end
  self.respond({ outcome = { outcome = "selected", optionId = option.id } })
  self.session:ask_done(self)
end

--- The first option of a kind.
---@param kind string
---@return acp_agent.PermissionOption?
function Ask:option(kind)
  for _, option in ipairs(self.options) do
    if option.kind == kind then
      return option
    end
  end
  return nil
end

--- Answers by kind; where the agent does not offer that, the user chooses among what it offers.
---@param kind string
function Ask:choose_kind(kind)
  local option = self:option(kind)
  if option then
    return self:choose(option)
  end
  self:select()
end

--- Lets the user choose by `vim.ui.select`.
function Ask:select()
  local choices = vim.tbl_map(function(option)
    return { label = option.name, option = option }
  end, self.options)
  require("acp_agent.ui").select(choices, ("Allow “%s”?"):format(self.title), function(choice)
    if choice then
      self:choose(choice.option)
    end
  end)
end

--- Answers that nobody decided: the turn was cancelled, or the agent took the question back.
function Ask:dismiss()
  if self.done then
    return
  end
  self.done = true
  self.session.transcript:asking(self.call, nil)
  if self.on_dismiss then
    self.on_dismiss()
  end
  self.respond({ outcome = { outcome = "cancelled" } })
  self.session:ask_done(self)
end

--- Whether it is about diffs that can be reviewed.
---@return boolean
function Ask:has_diff()
  return #self.diffs > 0
end

return M
