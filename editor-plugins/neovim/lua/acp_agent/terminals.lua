--- Commands that the agent lets the editor run (`terminal/*`): each in a process group of its own, its
--- output kept up to a limit.

local uv = vim.uv
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")
local process = require("acp_agent.process")
local utf8 = require("acp_agent.utf8")

---@class acp_agent.Terminal
---@field id string
---@field session string
---@field output string
---@field truncated boolean
---@field limit integer
---@field status? { exitCode: integer?, signal: string? }
---@field waiting fun()[] what to call at its end

---@class acp_agent.Terminals
---@field private all table<string, acp_agent.Terminal>
local Terminals = {}
Terminals.__index = Terminals

local M = {
  DEFAULT_LIMIT = 1024 * 1024, -- bytes of output where the agent names no limit
  HIGHEST_LIMIT = 16 * 1024 * 1024,
  MOST = 64, -- terminals of one agent at a time
}

-- stylua: ignore
local SIGNALS = {
  [1] = "SIGHUP", [2] = "SIGINT", [3] = "SIGQUIT", [4] = "SIGILL", [6] = "SIGABRT", [8] = "SIGFPE",
  [9] = "SIGKILL", [11] = "SIGSEGV", [13] = "SIGPIPE", [14] = "SIGALRM", [15] = "SIGTERM",
}

---@class acp_agent.TerminalEvents
---@field output fun(session: string, id: string, data: string)
---@field exit fun(session: string, id: string, code: integer?, signal: string?)

---@param events acp_agent.TerminalEvents
---@return acp_agent.Terminals
function M.new(events)
  return setmetatable({ all = {}, events = events, made = 0 }, Terminals)
end

---@private
---@param terminal acp_agent.Terminal
---@param data string
function Terminals:take(terminal, data)
  local text = terminal.output .. data
  if #text > terminal.limit then
    text = utf8.tail(text, terminal.limit)
    terminal.truncated = true
  end
  terminal.output = text
  self.events.output(terminal.session, terminal.id, data)
end

---@private
---@param terminal acp_agent.Terminal
function Terminals:maybe_end(terminal)
  if not terminal.exit or terminal.status or not (terminal.read_all or terminal.given_up) then
    return
  end
  local code, signal = terminal.exit[1], terminal.exit[2]
  if signal ~= 0 then
    terminal.status = { exitCode = vim.NIL, signal = SIGNALS[signal] or ("SIG%d"):format(signal) }
    self.events.exit(terminal.session, terminal.id, nil, terminal.status.signal)
  else
    terminal.status = { exitCode = code, signal = vim.NIL }
    self.events.exit(terminal.session, terminal.id, code, nil)
  end
  if not terminal.pipe:is_closing() then
    terminal.pipe:close()
  end
  for _, go_on in ipairs(terminal.waiting) do
    go_on()
  end
  terminal.waiting = {}
end

--- Answers `terminal/create`.
---@param params table CreateTerminalRequest
---@param respond acp_agent.Respond
function Terminals:create(params, respond)
  local command = json.string(params, "command")
  if not command or command == "" then
    return respond(nil, { code = jsonrpc.INVALID_PARAMS, message = "command must be a string" })
  end
  local open = 0
  for _, other in pairs(self.all) do
    open = open + (other.status and 0 or 1)
  end
  if open >= M.MOST then
    return respond(nil, {
      code = jsonrpc.INTERNAL_ERROR,
      message = ("%d commands run already; end one first"):format(open),
    })
  end
  local cwd = json.string(params, "cwd")
  if cwd and (cwd:sub(1, 1) ~= "/" or not uv.fs_stat(cwd)) then
    return respond(nil, { code = jsonrpc.INVALID_PARAMS, message = "cwd is not a directory: " .. cwd })
  end
  local env = {}
  for _, one in ipairs(json.objects(params, "env") or {}) do
    local name = json.string(one, "name")
    if name and not name:find("[=%z]") then
      env[name] = json.string(one, "value") or ""
    end
  end
  -- One pipe for both, so that what is written stays in its order.
  local ends = uv.pipe({ nonblock = true }, { nonblock = false })
  local pipe = assert(uv.new_pipe())
  pipe:open(ends.read)
  local terminal
  local ok, handle, pid = pcall(uv.spawn, command, {
    args = json.strings(params, "args") or {},
    stdio = { nil, ends.write, ends.write },
    env = process.environment(env),
    cwd = cwd,
    detached = true,
    hide = true,
  }, function(code, signal)
    terminal.exit = { code, signal }
    vim.schedule(function()
      terminal.handle:close()
      self:maybe_end(terminal)
    end)
    vim.defer_fn(function() -- somebody may hold the pipe open for ever
      terminal.given_up = true
      self:maybe_end(terminal)
    end, 300)
  end)
  uv.fs_close(ends.write)
  if not ok or not handle then
    pipe:close()
    return respond(nil, {
      code = jsonrpc.INTERNAL_ERROR,
      message = ("%s did not start: %s"):format(command, tostring(ok and pid or handle)),
    })
  end
  self.made = self.made + 1
  local id = ("terminal-%d"):format(self.made)
  local limit = json.number(params, "outputByteLimit") or M.DEFAULT_LIMIT
  terminal = {
    id = id,
    session = json.string(params, "sessionId") or "",
    output = "",
    truncated = false,
    limit = math.max(0, math.min(limit, M.HIGHEST_LIMIT)),
    waiting = {},
    handle = handle,
    pid = pid,
    pipe = pipe,
  }
  self.all[id] = terminal
  self:read(terminal)
  respond({ terminalId = id })
end

--- Reads as fast as the editor takes in, and no faster.
---@private
---@param terminal acp_agent.Terminal
function Terminals:read(terminal)
  local pieces, bytes, scheduled, paused = {}, 0, false, false
  local on_data
  local function take_in()
    scheduled = false
    local data = table.concat(pieces)
    pieces, bytes = {}, 0
    if data ~= "" then
      self:take(terminal, data)
    end
    if paused and not terminal.pipe:is_closing() then
      paused = false
      terminal.pipe:read_start(on_data)
    end
    self:maybe_end(terminal)
  end
  function on_data(_, data)
    if data then
      pieces[#pieces + 1] = data
      bytes = bytes + #data
      if bytes > M.DEFAULT_LIMIT then
        paused = true
        terminal.pipe:read_stop()
      end
    else
      terminal.read_all = true
    end
    if not scheduled then
      scheduled = true
      vim.schedule(take_in)
    end
  end
  terminal.pipe:read_start(on_data)
end

---@private
---@param params table
---@param respond acp_agent.Respond
---@return acp_agent.Terminal? nil where it was answered that there is none
function Terminals:find(params, respond)
  local terminal = self.all[json.string(params, "terminalId") or ""]
  if not terminal or terminal.session ~= json.string(params, "sessionId") then
    respond(nil, {
      code = jsonrpc.NOT_FOUND,
      message = "terminal not found: " .. tostring(params.terminalId),
    })
    return nil
  end
  return terminal
end

--- Answers `terminal/output`.
---@param params table TerminalOutputRequest
---@param respond acp_agent.Respond
function Terminals:current_output(params, respond)
  local terminal = self:find(params, respond)
  if terminal then
    respond({
      output = terminal.output,
      truncated = terminal.truncated,
      exitStatus = terminal.status,
    })
  end
end

--- Answers `terminal/wait_for_exit`, when the time has come.
---@param params table WaitForTerminalExitRequest
---@param respond acp_agent.Respond
function Terminals:wait_for_exit(params, respond)
  local terminal = self:find(params, respond)
  if not terminal then
    return
  end
  if terminal.status then
    respond(terminal.status)
  else
    table.insert(terminal.waiting, function()
      respond(terminal.status)
    end)
  end
end

--- Ends a command and everything that it started.
---@private
---@param terminal acp_agent.Terminal
---@param patience integer milliseconds between asking and making
function Terminals:finish(terminal, patience)
  if terminal.exit then
    process.signal_group(terminal.pid, "sigkill") -- what it left behind
    return
  end
  process.signal_group(terminal.pid, "sigterm")
  vim.defer_fn(function()
    if not terminal.status then
      process.signal_group(terminal.pid, "sigkill")
    end
  end, patience)
end

--- Answers `terminal/kill`: the command ends, its output can still be asked for.
---@param params table KillTerminalRequest
---@param respond acp_agent.Respond
function Terminals:kill(params, respond)
  local terminal = self:find(params, respond)
  if terminal then
    self:finish(terminal, 1000)
    respond(json.object())
  end
end

--- Answers `terminal/release`: the command ends and its id is forgotten.
---@param params table ReleaseTerminalRequest
---@param respond acp_agent.Respond
function Terminals:release(params, respond)
  local terminal = self:find(params, respond)
  if terminal then
    self:finish(terminal, 200)
    self.all[terminal.id] = nil
    respond(json.object())
  end
end

--- Ends all of them, those of one session where it is named.
---@param session? string
function Terminals:close(session)
  for id, terminal in pairs(self.all) do
    if not session or terminal.session == session then
      process.signal_group(terminal.pid, "sigkill")
      self.all[id] = nil
    end
  end
end

return M
