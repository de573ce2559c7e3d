--- An agent as a child process in a group of its own, its lines handed over in small portions.
---
--- Reading goes on as fast as the pipe gives, handling takes a few milliseconds of each tick, so that
--- the editor stays responsive however much comes; when too much waits, reading pauses.

local uv = vim.uv

local M = {
  LINE_LIMIT = 64 * 1024 * 1024, -- bytes of one message
  WAITING_LIMIT = 8 * 1024 * 1024, -- bytes that wait before reading pauses
  BUDGET = 6e6, -- nanoseconds of handling in a tick
  STDERR_LIMIT = 16384, -- bytes of the end of stderr that are kept
}

--- Those that run, also where nobody speaks with them any more.
---@type table<integer, acp_agent.Process>
M.alive = {}

---@class acp_agent.ProcessOptions
---@field command string[]
---@field env? table<string, string>
---@field cwd? string
---@field on_line fun(line: string)
---@field on_too_long fun(bytes: integer) a line over the limit, which is left out
---@field on_exit fun(code: integer, signal: integer) once, after its last line

---@class acp_agent.Process
---@field pid integer
---@field stderr string the end of what it wrote there
---@field exited boolean
local Process = {}
Process.__index = Process

--- The environment of a child: the editor's, and what is set for it.
---@param extra? table<string, string>
---@return string[]
function M.environment(extra)
  local all = vim.fn.environ()
  all.NVIM = nil -- the address of this editor is nothing for others
  all.NVIM_LISTEN_ADDRESS = nil
  for name, value in pairs(extra or {}) do
    all[name] = value
  end
  local list = {}
  for name, value in pairs(all) do
    list[#list + 1] = name .. "=" .. value
  end
  return list
end

--- Sends a signal to a process and everything that it started.
---@param pid integer the leader of a group
---@param signal string such as "sigterm"
function M.signal_group(pid, signal)
  pcall(uv.kill, -pid, signal)
end

--- Starts a process.
---@param options acp_agent.ProcessOptions
---@return acp_agent.Process? process
---@return string? problem why it did not start
function M.start(options)
  local self = setmetatable({
    options = options,
    stderr = "",
    exited = false,
    lines = {},
    first = 1,
    waiting = 0,
    pieces = {},
    partial = 0,
    draining = false,
    paused = false,
    stdin = assert(uv.new_pipe()),
    stdout = assert(uv.new_pipe()),
    stderr_pipe = assert(uv.new_pipe()),
  }, Process)
  local program = options.command[1]
  local ok, handle, pid = pcall(uv.spawn, program, {
    args = vim.list_slice(options.command, 2),
    stdio = { self.stdin, self.stdout, self.stderr_pipe },
    env = M.environment(options.env),
    cwd = options.cwd,
    detached = true,
    hide = true,
  }, function(code, signal)
    self.status = { code, signal }
    M.alive[self.pid] = nil
    self:maybe_exit()
    -- Whoever inherited the pipes may hold them open for ever.
    vim.defer_fn(function()
      self:end_of_output()
    end, 500)
  end)
  if not ok or not handle then
    for _, pipe in ipairs({ self.stdin, self.stdout, self.stderr_pipe }) do
      pipe:close()
    end
    local reason = tostring(ok and pid or handle)
    if reason:find("ENOENT") then
      local cwd = options.cwd
      if cwd and not uv.fs_stat(cwd) then
        return nil, ("the folder %s is not there"):format(cwd)
      end
      return nil, ("there is no program %s; install it, or give its full path"):format(program)
    elseif reason:find("EACCES") then
      return nil, ("%s may not be executed"):format(program)
    end
    return nil, ("%s did not start: %s"):format(program, reason)
  end
  self.handle, self.pid = handle, pid
  M.alive[pid] = self
  self:read()
  self.stderr_pipe:read_start(function(_, data)
    if data then
      self.stderr = (self.stderr .. data):sub(-M.STDERR_LIMIT)
    end
  end)
  return self
end

---@private
function Process:read()
  self.stdout:read_start(function(_, data)
    if data then
      self:take(data)
    else
      self.ended = true
      self:schedule()
    end
  end)
end

--- Splits what came into lines.
---@private
---@param data string
function Process:take(data)
  local at = 1
  while true do
    local stop = data:find("\n", at, true)
    local piece = data:sub(at, stop and stop - 1 or -1)
    self.partial = self.partial + #piece
    if self.partial <= M.LINE_LIMIT then
      self.pieces[#self.pieces + 1] = piece
    else
      self.pieces = {}
    end
    if not stop then
      break
    end
    if self.partial > M.LINE_LIMIT then
      self.lines[#self.lines + 1] = self.partial
    else
      self.lines[#self.lines + 1] = table.concat(self.pieces)
      self.waiting = self.waiting + self.partial
    end
    self.pieces, self.partial = {}, 0
    at = stop + 1
  end
  if self.waiting > M.WAITING_LIMIT and not self.paused then
    self.paused = true
    self.stdout:read_stop()
  end
  if #self.lines >= self.first then
    self:schedule()
  end
end

---@private
function Process:schedule()
  if not self.draining then
    self.draining = true
    vim.schedule(function()
      self:drain()
    end)
  end
end

--- Hands over what came; a fault in what takes it costs this line, and not all that follow.
---@private
---@param line string|integer its text; the bytes of one that is too long
function Process:hand_over(line)
  local take = self.options.on_line
  if type(line) == "number" then
    take = self.options.on_too_long
  else
    self.waiting = self.waiting - #line
  end
  local ok, fault = xpcall(take, debug.traceback, line)
  if not ok then
    vim.notify("acp_agent: " .. tostring(fault), vim.log.levels.ERROR)
  end
end

---@private
function Process:drain()
  local start = uv.hrtime()
  while self.first <= #self.lines do
    local line = self.lines[self.first]
    self.lines[self.first] = false
    self.first = self.first + 1
    self:hand_over(line)
    if uv.hrtime() - start > M.BUDGET then
      break
    end
  end
  if self.first > #self.lines then
    self.lines, self.first = {}, 1
    self.draining = false
    if self.paused and not self.ended then
      self.paused = false
      self:read()
    end
    self:maybe_exit()
  else
    vim.defer_fn(function()
      self:drain()
    end, 1) -- keys and redraws come first
  end
end

---@private
function Process:end_of_output()
  if not self.ended and not self.paused then
    self.ended = true
    self:maybe_exit()
  elseif self.paused then
    vim.defer_fn(function()
      self:end_of_output()
    end, 100)
  end
end

--- The exit is told after the last line was handled.
---@private
function Process:maybe_exit()
  if self.exited or not self.status or not self.ended or self.draining then
    return
  end
  self.exited = true
  for _, handle in ipairs({ self.stdin, self.stdout, self.stderr_pipe, self.handle }) do
    if not handle:is_closing() then
      handle:close()
    end
  end
  M.signal_group(self.pid, "sigkill") -- whatever it left behind
  vim.schedule(function()
    self.options.on_exit(self.status[1], self.status[2])
  end)
end

--- Writes to its stdin; what an ended process is sent is dropped.
---@param text string
function Process:write(text)
  if not self.exited and not self.stdin:is_closing() then
    self.stdin:write(text, function() end)
  end
end

--- Ends it: its stdin is closed, then its group is told to, then made to.
---@param patience? integer milliseconds for each step; 1000 by default
function Process:stop(patience)
  patience = patience or 1000
  if self.exited or self.stopping then
    return
  end
  self.stopping = true
  if not self.stdin:is_closing() then
    self.stdin:close()
  end
  for step, signal in ipairs({ "sigterm", "sigkill" }) do
    vim.defer_fn(function()
      if not self.status then
        M.signal_group(self.pid, signal)
      end
    end, patience * step)
  end
end

--- Ends all that run before the editor ends: their stdin is closed, so that they can end what they
--- started themselves; who does not is told to, then made to.
---@param patience integer milliseconds for the first step; a quarter of it for the next
function M.stop_all(patience)
  local function all_ended()
    return next(M.alive) == nil
  end
  for _, process in pairs(M.alive) do
    if not process.stdin:is_closing() then
      process.stdin:close()
    end
  end
  if vim.wait(patience, all_ended, 5) then
    return
  end
  for _, signal in ipairs({ "sigterm", "sigkill" }) do
    for pid in pairs(M.alive) do
      M.signal_group(pid, signal)
    end
    vim.wait(patience / 4, all_ended, 5)
  end
end

return M
