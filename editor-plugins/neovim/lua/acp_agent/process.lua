--- An agent as a child process in a group of its own; what it writes comes as lines.

local lines = require("acp_agent.lines")

local uv = vim.uv

local M = {
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
    vim.defer_fn(function()
      self.output:finish()
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
        return nil, ("folder not found: %s"):format(cwd)
      end
      return nil, ("program not found: %s; install it, or set its full path"):format(program)
    elseif reason:find("EACCES") then
      return nil, ("%s may not be executed"):format(program)
    end
    return nil, ("%s did not start: %s"):format(program, reason)
  end
  self.handle, self.pid = handle, pid
  M.alive[pid] = self
  self.output = lines.read(self.stdout, {
    on_line = options.on_line,
    on_too_long = options.on_too_long,
    on_handled = function()
      self:maybe_exit()
    end,
  })
  self.stderr_pipe:read_start(function(_, data)
    if data then
      self.stderr = (self.stderr .. data):sub(-M.STDERR_LIMIT)
    end
  end)
  return self
end

--- The exit is told after the last line was handled.
---@private
function Process:maybe_exit()
  if self.exited or not self.status or not self.output:over() then
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
