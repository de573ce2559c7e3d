--- JSON-RPC 2.0 as a peer: both sides ask, answer and notify. Nothing here knows of processes.

local json = require("acp_agent.json")

---@class acp_agent.RpcError
---@field code integer a code of JSON-RPC or of the protocol; `M.LOCAL` where no answer came
---@field message string
---@field data? any

---@alias acp_agent.Answer fun(error: acp_agent.RpcError?, result: any)
---@alias acp_agent.Respond fun(result: any, error?: acp_agent.RpcError)

---@class acp_agent.PeerHandlers
---@field write fun(line: string) sends one line, its end included
---@field request fun(method: string, params: table, respond: acp_agent.Respond): function?
---  answers a request of the other side; what it returns is called when that side withdraws it
---@field notification fun(method: string, params: table)
---@field garbage fun(line: string, reason: string) a line that is no message
---@field log? fun(direction: "sent"|"received", line: string)

---@class acp_agent.Peer
---@field private handlers acp_agent.PeerHandlers
---@field private waiting table<integer, { answer: acp_agent.Answer, timer?: uv.uv_timer_t, method: string }>
---@field private asked table<any, function> withdrawals by the id of the other side's request
local Peer = {}
Peer.__index = Peer

local M = {
  PARSE_ERROR = -32700,
  INVALID_REQUEST = -32600,
  METHOD_NOT_FOUND = -32601,
  INVALID_PARAMS = -32602,
  INTERNAL_ERROR = -32603,
  CANCELLED = -32800,
  AUTH_REQUIRED = -32000,
  NOT_FOUND = -32002,
  LOCAL = 0,
}

---@param handlers acp_agent.PeerHandlers
---@return acp_agent.Peer
function M.peer(handlers)
  local peer = { handlers = handlers, waiting = {}, asked = {}, next_id = 0, closed = nil }
  return setmetatable(peer, Peer)
end

---@private
---@param message table
function Peer:send(message)
  message.jsonrpc = "2.0"
  local line = json.encode(message) .. "\n"
  if self.handlers.log then
    self.handlers.log("sent", line)
  end
  self.handlers.write(line)
end

--- Asks the other side. `answer` is called exactly once, also when no answer comes.
---@param method string
---@param params table
---@param answer acp_agent.Answer
---@param deadline? integer milliseconds; without one it waits as long as the connection lives
---@return integer id
function Peer:request(method, params, answer, deadline)
  self.next_id = self.next_id + 1
  local id = self.next_id
  if self.closed then
    answer({ code = M.LOCAL, message = self.closed })
    return id
  end
  local entry = { answer = answer, method = method }
  self.waiting[id] = entry
  if deadline then
    entry.timer = vim.defer_fn(function()
      if self.waiting[id] then
        self:notify("$/cancel_request", { requestId = id })
        local seconds = ("%g"):format(deadline / 1000)
        self:settle(id, {
          code = M.LOCAL,
          message = ("the agent did not respond to %s within %s seconds"):format(method, seconds),
        })
      end
    end, deadline)
  end
  self:send({ id = id, method = method, params = params })
  return id
end

--- Tells the other side something.
---@param method string
---@param params table
function Peer:notify(method, params)
  if not self.closed then
    self:send({ method = method, params = params })
  end
end

---@private
---@param id integer
---@param error acp_agent.RpcError?
---@param result? any
function Peer:settle(id, error, result)
  local entry = self.waiting[id]
  if not entry then
    return -- an answer to nothing, or one that came too late
  end
  self.waiting[id] = nil
  if entry.timer and not entry.timer:is_closing() then
    entry.timer:stop()
    entry.timer:close()
  end
  entry.answer(error, result)
end

---@private
---@param id any
---@param method string
---@param params table
function Peer:serve(id, method, params)
  local answered = false
  local function respond(result, error)
    if answered or self.closed then
      return
    end
    answered = true
    self.asked[id] = nil
    if error then
      self:send({ id = id, error = error })
    else
      self:send({ id = id, result = result == nil and json.object() or result })
    end
  end
  local ok, withdraw = xpcall(self.handlers.request, debug.traceback, method, params, respond)
  if not ok then
    vim.schedule(function()
      vim.notify("acp_agent: " .. method .. ": " .. tostring(withdraw), vim.log.levels.DEBUG)
    end)
    respond(nil, { code = M.INTERNAL_ERROR, message = "the client failed to answer " .. method })
  elseif not answered then
    self.asked[id] = function()
      if withdraw then
        withdraw()
      end
      respond(nil, { code = M.CANCELLED, message = "the request was cancelled" })
    end
  end
end

---@private
---@param message table
---@return boolean whether it is a message at all
function Peer:dispatch(message)
  local id, method = message.id, message.method
  local params = type(message.params) == "table" and message.params or {}
  if type(method) == "string" then
    if id == nil or id == vim.NIL then
      if method == "$/cancel_request" then
        local withdraw = params.requestId ~= nil and self.asked[params.requestId]
        if withdraw then
          withdraw()
        end
      else
        self.handlers.notification(method, params)
      end
    elseif type(id) == "string" or type(id) == "number" then
      self:serve(id, method, params)
    else
      return false
    end
    return true
  end
  if message.error ~= nil and message.error ~= vim.NIL then
    if type(id) == "number" then
      local error = message.error
      self:settle(id, {
        code = json.number(error, "code") or M.INTERNAL_ERROR,
        message = json.string(error, "message") or "the agent gave no reason",
        data = json.table(error, "data"),
      })
    end
    return true
  end
  if message.result ~= nil and type(id) == "number" then
    self:settle(id, nil, message.result)
    return true
  end
  return message.result ~= nil
end

--- Takes in one line of the other side's.
---@param line string
function Peer:receive(line)
  if self.closed or line:match("^%s*$") then
    return
  end
  if self.handlers.log then
    self.handlers.log("received", line)
  end
  local ok, message = json.decode(line)
  if not ok then
    self.handlers.garbage(line, "it is not JSON")
  elseif type(message) ~= "table" or vim.islist(message) or not self:dispatch(message) then
    self.handlers.garbage(line, "not a JSON-RPC message")
  end
end

--- Ends the connection: everything that waits is answered with the reason.
---@param reason string
function Peer:close(reason)
  if self.closed then
    return
  end
  self.closed = reason
  self.asked = {}
  local ids = vim.tbl_keys(self.waiting)
  table.sort(ids)
  for _, id in ipairs(ids) do
    self:settle(id, { code = M.LOCAL, message = reason })
  end
end

return M
