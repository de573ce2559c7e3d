--- A conversation with an agent: its turns, what it says of itself, what it asks of the user.

local config = require("acp_agent.config")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

---@class acp_agent.Usage
---@field used number
---@field size number
---@field cost? { amount: number, currency: string }

---@class acp_agent.Session
---@field client acp_agent.Client
---@field id string
---@field cwd string
---@field title? string
---@field transcript acp_agent.Transcript
---@field commands table[] AvailableCommand
---@field options acp_agent.ConfigOption[]
---@field modes? { current: string, available: table[] }
---@field usage? acp_agent.Usage
---@field plan? { done: integer, all: integer }
---@field turn? { cancelled: boolean }
---@field queue acp_agent.Queued[]
---@field asks acp_agent.Ask[] permissions that wait, the oldest first
---@field questions table<table, true> that are no permissions and wait for the user
---@field context acp_agent.ContextItem[] what goes with the next prompt
---@field problem? string why its agent is gone
---@field on_change fun(what: "transcript"|"state"|"ask"|"returned", detail: any)
local Session = {}
Session.__index = Session
for _, part in ipairs({ "turns", "files" }) do
  for name, method in pairs(require("acp_agent.session." .. part)) do
    Session[name] = method
  end
end

local M = {}

--- The last one that was used.
---@type acp_agent.Session?
M.last = nil

--- A session that the agent does not know yet.
---@param client acp_agent.Client
---@param cwd string
---@return acp_agent.Session
function M.new(client, cwd)
  local set = config.current
  return setmetatable({
    client = client,
    id = "",
    cwd = cwd,
    roots = { cwd },
    transcript = require("acp_agent.transcript").new({
      root = cwd,
      max_output_lines = set.chat.max_output_lines,
      icons = set.icons,
    }),
    commands = {},
    options = {},
    queue = {},
    asks = {},
    questions = {},
    context = {},
    notes = {},
    seen = {}, -- path -> the text that the agent last read or wrote
    edits = {}, -- path -> the diff that the user was shown, while its call runs
    on_change = function() end,
  }, Session)
end

--- Takes over what the response of new, load, resume or fork says.
---@param result any
function Session:opened(result)
  self:set_options(json.objects(result, "configOptions"))
  local modes = json.table(result, "modes")
  if modes then
    self.modes = {
      current = json.string(modes, "currentModeId") or "",
      available = json.objects(modes, "availableModes") or {},
    }
  end
  self.problem = nil
  self.on_change("state")
end

---@param options table[]? SessionConfigOption
function Session:set_options(options)
  if options then
    self.options = require("acp_agent.options").read(options)
  end
end

local UPDATES = {
  available_commands_update = function(self, update)
    self.commands = json.objects(update, "availableCommands") or {}
  end,
  current_mode_update = function(self, update)
    if self.modes then
      self.modes.current = json.string(update, "currentModeId") or self.modes.current
    end
  end,
  config_option_update = function(self, update)
    self:set_options(json.objects(update, "configOptions"))
  end,
  session_info_update = function(self, update)
    if json.is_null(update, "title") then -- absent leaves it as it is, null clears it
      self.title = nil
    else
      self.title = json.string(update, "title") or self.title
    end
  end,
  usage_update = function(self, update)
    local used, size = json.number(update, "used"), json.number(update, "size")
    if used and size then
      local cost = json.table(update, "cost")
      local amount = json.number(cost, "amount")
      self.usage = { used = used, size = size }
      if amount then
        self.usage.cost = { amount = amount, currency = json.string(cost, "currency") or "" }
      end
    end
  end,
}

---@param update table a Plan
local function count_plan(self, update)
  local plan = json.table(update, "plan") or update
  local entries = json.objects(plan, "entries")
  if entries then
    local done = 0
    for _, entry in ipairs(entries) do
      done = done + (entry.status == "completed" and 1 or 0)
    end
    self.plan = #entries > 0 and { done = done, all = #entries } or nil
  end
end
UPDATES.plan, UPDATES.plan_update = count_plan, count_plan
UPDATES.plan_removed = function(self)
  self.plan = nil
end

--- Takes in a `session/update`.
---@param update table SessionUpdate
function Session:update(update)
  local kind = json.string(update, "sessionUpdate") or ""
  if kind == "agent_thought_chunk" and not config.current.chat.thoughts then
    return
  end
  self.transcript:apply(update)
  local handle = UPDATES[kind]
  if handle then
    handle(self, update)
    self.on_change("state")
  end
  if kind == "tool_call" or kind == "tool_call_update" then
    local status = json.string(update, "status")
    if status == "completed" or status == "failed" then
      require("acp_agent.review.outcome").call_ended(self, json.string(update, "toolCallId"))
      self:catch_up_soon()
    end
  end
  self.on_change("transcript")
end

---@param id string
---@param data string
function Session:terminal_output(id, data)
  self.transcript:terminal_output(id, data)
  self.on_change("transcript")
end

---@param id string
---@param code integer?
---@param signal string?
function Session:terminal_exit(id, code, signal)
  self.transcript:terminal_exit(id, code, signal)
  self.on_change("transcript")
end

--- Shows something that is nobody's message.
---@param text string
---@param severity? "info"|"warning"|"error"
function Session:notice(text, severity)
  self.transcript:notice(text, severity)
  self.on_change("transcript")
end

--- The agent is gone.
---@param problem string
---@param quietly? boolean
function Session:agent_ended(problem, quietly)
  self.problem = problem
  self.turn, self.questions = nil, {}
  self:withdraw_asks()
  self:return_queue()
  self.transcript:end_calls("cancelled")
  if quietly then
    self:notice(problem, "info")
  else
    self:notice(problem .. "\n“:AcpAgent restart” starts it again and goes on", "error")
  end
  self.on_change("state")
end

--- Answers `session/request_permission`.
---@param params table RequestPermissionRequest
---@param respond acp_agent.Respond
---@return function? withdraw
function Session:ask_permission(params, respond)
  local ask, problem = require("acp_agent.permissions").new(self, params, respond)
  if not ask then
    return respond(nil, {
      code = jsonrpc.INVALID_PARAMS,
      message = problem --[[@as string]],
    })
  end
  if self.turn and self.turn.cancelled then
    return ask:dismiss()
  end
  table.insert(self.asks, ask)
  ask:show()
  self.on_change("transcript")
  self.on_change("ask", ask)
  return function()
    ask:dismiss()
  end
end

--- An ask is answered.
---@param ask acp_agent.Ask
function Session:ask_done(ask)
  self.asks = vim.tbl_filter(function(other)
    return other ~= ask
  end, self.asks)
  self.on_change("transcript")
  self.on_change("ask")
end

--- A question that is no permission waits for the user, or does not any more.
---@param question table
---@param waits boolean
function Session:asking(question, waits)
  self.questions[question] = waits or nil
  self.on_change("state")
end

--- Closes the session where the agent offers that; its conversation is kept by the agent.
function Session:close()
  self:cancel()
  if self.id ~= "" and not self.problem then
    self.client.terminals:close(self.id)
    if self.client:offers("close") then
      self.client:request("session/close", { sessionId = self.id }, function() end)
    end
    self.client.sessions[self.id] = nil
  end
end

return M
