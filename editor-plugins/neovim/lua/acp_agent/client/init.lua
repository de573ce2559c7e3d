--- A running agent: its process, what it can do, its sessions, and the editor's side of the protocol.

local config = require("acp_agent.config")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

---@class acp_agent.Client
---@field name string as the configuration calls it
---@field state "starting"|"ready"|"ended"
---@field title string what it calls itself
---@field capabilities table AgentCapabilities
---@field auth_methods table[] AuthMethod
---@field sessions table<string, acp_agent.Session>
---@field problem? string why it ended
---@field log string[] the last messages, for `:AcpAgent log`
local Client = {}
Client.__index = Client
for name, method in pairs(require("acp_agent.client.messages")) do
  Client[name] = method
end

local M = { VERSION = 1, LOG_LINES = 500, LOG_LINE_BYTES = 2000 }

---@type table<string, acp_agent.Client> the running ones by name
M.running = {}

---@param name string
---@param settings acp_agent.AgentConfig
---@return acp_agent.Client
local function new(name, settings)
  local self = setmetatable({
    name = name,
    settings = settings,
    state = "starting",
    title = name,
    capabilities = {},
    auth_methods = {},
    sessions = {},
    early = {},
    log = {},
    waiting = {},
    garbage = 0,
  }, Client)
  self.terminals = require("acp_agent.terminals").new({
    output = function(session, id, data)
      self:with_session(session, function(one)
        one:terminal_output(id, data)
      end)
    end,
    exit = function(session, id, code, signal)
      self:with_session(session, function(one)
        one:terminal_exit(id, code, signal)
      end)
    end,
  })
  return self
end

--- The agent of this name, started where it does not run.
---@param name? string the configuration's default where it is left out
---@param ready fun(problem: string?, client: acp_agent.Client?)
function M.get(name, ready)
  name = name or config.current.agent
  local running = M.running[name]
  if running then
    return running:when_ready(ready)
  end
  local settings = config.current.agents[name]
  if not settings then
    return ready(("no agent named %s; list agents in setup()"):format(name))
  end
  local client = new(name, settings)
  M.running[name] = client
  client:start()
  client:when_ready(ready)
end

--- Calls back when the handshake is done, or has failed.
---@param ready fun(problem: string?, client: acp_agent.Client?)
function Client:when_ready(ready)
  if self.state == "ready" then
    ready(nil, self)
  elseif self.state == "ended" then
    ready(self.problem)
  else
    table.insert(self.waiting, ready)
  end
end

---@private
---@param problem string?
function Client:settle(problem)
  local waiting = self.waiting
  self.waiting = {}
  for _, ready in ipairs(waiting) do
    ready(problem, not problem and self or nil)
  end
end

---@private
---@param direction string
---@param line string
function Client:record(direction, line)
  local log = self.log
  log[#log + 1] = ("%s %s"):format(direction == "sent" and "→" or "←", line:sub(1, M.LOG_LINE_BYTES))
  if #log > 2 * M.LOG_LINES then
    self.log = vim.list_slice(log, M.LOG_LINES)
  end
end

---@private
function Client:start()
  self.peer = jsonrpc.peer({
    write = function(line)
      self.process:write(line)
    end,
    request = function(method, params, respond)
      return require("acp_agent.requests").serve(self, method, params, respond)
    end,
    notification = function(method, params)
      self:notified(method, params)
    end,
    garbage = function(line, reason)
      self:got_garbage(line, reason)
    end,
    log = function(direction, line)
      self:record(direction, line)
    end,
  })
  local process, problem = require("acp_agent.process").start({
    command = self.settings.command,
    env = self.settings.env,
    on_line = function(line)
      self.peer:receive(line)
    end,
    on_too_long = function(bytes)
      self:tell(("skipped a message that is too long (%d bytes)"):format(bytes), "warning")
    end,
    on_exit = function(code, signal)
      self:exited(code, signal)
    end,
  })
  if not process then
    return self:finish(problem --[[@as string]])
  end
  self.process = process
  self.peer:request("initialize", {
    protocolVersion = M.VERSION,
    clientCapabilities = require("acp_agent.client.capabilities")(),
    clientInfo = { name = "acp-agent.nvim", title = "Neovim", version = "0.1.0" },
  }, function(error, result)
    self:initialized(error, result)
  end, config.current.timeouts.initialize)
end

---@private
---@param error acp_agent.RpcError?
---@param result any
function Client:initialized(error, result)
  if self.state == "ended" then
    return
  end
  if error then
    return self:finish("could not be started: " .. inert.line(error.message))
  end
  local version = json.number(result, "protocolVersion")
  if version ~= M.VERSION then
    return self:finish(
      ("it uses version %s of the protocol; this plugin supports version %d"):format(
        inert.line(tostring(type(result) == "table" and result.protocolVersion or "?"), 40),
        M.VERSION
      )
    )
  end
  self.capabilities = json.table(result, "agentCapabilities") or {}
  self.auth_methods = json.objects(result, "authMethods") or {}
  self.meta = json.table(result, "_meta") or {}
  local info = json.table(result, "agentInfo")
  self.title = inert.line(json.string(info, "title") or json.string(info, "name") or self.name, 60)
  self.version = json.string(info, "version")
  self.state = "ready"
  self:settle()
end

--- Whether the agent takes words in the middle of a turn by `_session/steering`.
---@return boolean
function Client:steers()
  local meta = json.table(self.capabilities, "_meta")
  return json.boolean(json.table(meta, "steering"), "supported") == true
    or json.boolean(json.table(self.meta, "steering"), "supported") == true
end

--- Whether a method for sessions is advertised.
---@param name "load"|"list"|"resume"|"fork"|"delete"|"close"|"title"|"archive"
---@return boolean
function Client:offers(name)
  if name == "load" then
    return json.offers(self.capabilities, "loadSession")
  end
  return json.offers(self.capabilities, "sessionCapabilities", name)
end

--- The end of stderr, for a message: its last lines, inert.
---@private
---@return string
function Client:last_words()
  local words = self.process and vim.trim(self.process.stderr) or ""
  local lines = vim.split(words, "\n", { plain = true })
  lines = vim.list_slice(lines, math.max(1, #lines - 2))
  return words == "" and "" or (": " .. inert.line(table.concat(lines, " / "), 400))
end

---@private
---@param code integer
---@param signal integer
function Client:exited(code, signal)
  local how = signal ~= 0 and ("was killed by signal %d"):format(signal)
    or ("exited with code %d"):format(code)
  self:finish(("it %s%s"):format(how, self:last_words()))
end

--- Ends the client; every session is told why.
---@param problem string
---@param quietly? boolean the user wanted it
function Client:finish(problem, quietly)
  if self.state == "ended" then
    return
  end
  self.state = "ended"
  self.problem = ("%s: %s"):format(self.name, problem)
  if M.running[self.name] == self then
    M.running[self.name] = nil
  end
  for _, session in pairs(self.sessions) do -- before their requests fail, to tell it once
    session:agent_ended(self.problem, quietly)
  end
  self.peer:close(self.problem)
  self.terminals:close()
  if self.process then
    self.process:stop()
  end
  self:settle(self.problem)
end

--- Asks the agent something, within the usual time.
---@param method string
---@param params table
---@param answer acp_agent.Answer
---@param deadline? integer|false milliseconds; false: none
function Client:request(method, params, answer, deadline)
  if deadline == nil then
    deadline = config.current.timeouts.request
  end
  return self.peer:request(method, params, answer, deadline or nil)
end

---@param method string
---@param params table
function Client:notify(method, params)
  self.peer:notify(method, params)
end

--- Ends every agent before the editor ends.
function M.stop_all()
  for _, client in pairs(M.running) do
    client.state = "ended"
    client.terminals:close()
  end
  M.running = {}
  require("acp_agent.process").stop_all(2000)
end

return M
