--- The turns of a conversation: begun, steered, queued, cancelled, ended.

local config = require("acp_agent.config")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

---@class acp_agent.Queued
---@field text string
---@field blocks table[]
---@field entry acp_agent.StreamEntry

---@class acp_agent.Session
local Session = {}

--- Says something to the agent: as a turn, or during one by steering, or when it is over.
---@param text string what the chat shows
---@param blocks table[] ContentBlock
---@param queue? boolean wait for the end of a running turn, whatever the settings say
---@return string? problem why it was not taken
function Session:submit(text, blocks, queue)
  if self.problem then
    return self.problem
  elseif self.id == "" then
    return "the session is not open yet"
  end
  require("acp_agent.session").last = self
  if #self.notes > 0 then
    blocks = vim.list_extend(vim.deepcopy(self.notes), blocks)
    self.notes = {}
  end
  if not self.turn then
    self:start_turn({ text = text, blocks = blocks, entry = self.transcript:said(text) })
  elseif queue or config.current.while_running == "queue" or not self.client:steers() then
    local entry = self.transcript:said(text, "queued until the turn ends")
    table.insert(self.queue, { text = text, blocks = blocks, entry = entry })
  else
    local entry = self.transcript:said(text, "is being sent")
    self:steer({ text = text, blocks = blocks, entry = entry })
  end
  self.on_change("transcript")
  self.on_change("state")
end

---@private
---@param said acp_agent.Queued
function Session:steer(said)
  self.client:request("_session/steering", {
    sessionId = self.id,
    prompt = said.blocks,
    _meta = { steering = { idleBehavior = "promptRequired" } }, -- a turn begins by a prompt only
  }, function(error, result)
    local outcome = not error and json.string(result, "outcome")
    if outcome == "promptRequired" or (error and self.turn == nil and not self.problem) then
      self.transcript:note(said.entry, nil)
      if self.turn then
        table.insert(self.queue, said)
      else
        self:start_turn(said)
      end
    elseif error and self.turn then
      self.transcript:note(said.entry, "queued until the turn ends")
      table.insert(self.queue, said)
    else
      self.transcript:note(said.entry, nil)
    end
    self.on_change("transcript")
  end)
end

---@private
---@param said acp_agent.Queued
function Session:start_turn(said)
  local turn = { cancelled = false }
  self.turn = turn
  self.transcript:note(said.entry, nil)
  local params = { sessionId = self.id, prompt = said.blocks }
  self.client:request("session/prompt", params, function(error, result)
    if self.turn == turn then
      self:turn_ended(error, result)
    end
  end, false)
  self.on_change("state")
end

local STOPS = {
  cancelled = { "cancelled", "info" },
  max_tokens = { "the answer reached the model's output limit", "warning" },
  max_turn_requests = { "the turn reached its limit of requests; send “continue” to continue", "warning" },
  refusal = { "the model refused; the agent drops this prompt and its results", "warning" },
}

---@private
---@param error acp_agent.RpcError?
---@param result any
function Session:turn_ended(error, result)
  self.turn = nil
  self:withdraw_asks()
  self.edits = {}
  local stop = not error and json.string(result, "stopReason") or nil
  self.transcript:end_calls("cancelled")
  self:catch_up_soon()
  if error then
    self:notice(inert.line(error.message, 1000), "error")
  elseif STOPS[stop] then
    self:notice(STOPS[stop][1], STOPS[stop][2])
  elseif stop ~= "end_turn" then
    self:notice("the turn ended: " .. inert.line(stop or "without a reason", 60), "warning")
  end
  if error and error.code == jsonrpc.AUTH_REQUIRED then
    require("acp_agent.auth").offer(self.client, error.message)
  end
  if error or stop == "cancelled" then
    self:return_queue()
  elseif #self.queue > 0 then
    self:start_turn(table.remove(self.queue, 1))
  end
  self.on_change("transcript")
  self.on_change("state")
end

--- What waits goes back to where it was typed.
---@private
function Session:return_queue()
  if #self.queue == 0 then
    return
  end
  local texts = {}
  for _, said in ipairs(self.queue) do
    self.transcript:note(said.entry, "was not sent")
    texts[#texts + 1] = said.text
  end
  self.queue = {}
  self.on_change("returned", table.concat(texts, "\n\n"))
end

---@private
function Session:withdraw_asks()
  local asks = self.asks
  self.asks = {}
  for _, ask in ipairs(asks) do
    ask:dismiss()
  end
  self.on_change("ask")
end

--- Ends the turn that runs.
function Session:cancel()
  local turn = self.turn
  if not turn then
    return
  end
  self.client:notify("session/cancel", { sessionId = self.id })
  self:withdraw_asks()
  turn.cancelled = true
  vim.defer_fn(function()
    if self.turn == turn then
      self:notice("the agent does not end the turn; “:AcpAgent restart” restarts it", "error")
      self:turn_ended(nil, { stopReason = "cancelled" })
    end
  end, config.current.timeouts.cancel)
  self.on_change("state")
end

return Session
