--- The lines that come through a pipe, handed over in small portions.
---
--- Reading goes on as fast as the pipe gives, handling takes a few milliseconds of each tick, so that
--- the editor stays responsive however much comes; when too much waits, reading pauses.

local uv = vim.uv

local M = {
  LINE_LIMIT = 64 * 1024 * 1024, -- bytes of one line
  WAITING_LIMIT = 8 * 1024 * 1024, -- bytes that wait before reading pauses
  BUDGET = 6e6, -- nanoseconds of handling in a tick
}

---@class acp_agent.LinesOptions
---@field on_line fun(line: string)
---@field on_too_long fun(bytes: integer) a line over the limit, which is left out
---@field on_handled fun() whenever all that came was handed over

---@class acp_agent.Lines
---@field ended boolean whether nothing comes any more
local Lines = {}
Lines.__index = Lines

--- Reads a pipe from now on.
---@param pipe uv.uv_pipe_t
---@param options acp_agent.LinesOptions
---@return acp_agent.Lines
function M.read(pipe, options)
  local self = setmetatable({
    pipe = pipe,
    options = options,
    lines = {},
    first = 1,
    waiting = 0,
    pieces = {},
    partial = 0,
    draining = false,
    paused = false,
    ended = false,
  }, Lines)
  self:read()
  return self
end

--- Whether nothing comes any more, and all that came was handed over.
---@return boolean
function Lines:over()
  return self.ended and not self.draining
end

--- Waits no more for the end of the pipe, which whoever inherited it may hold open for ever.
function Lines:finish()
  if not self.ended and not self.paused then
    self.ended = true
    self.options.on_handled()
  elseif self.paused then
    vim.defer_fn(function()
      self:finish()
    end, 100)
  end
end

---@private
function Lines:read()
  self.pipe:read_start(function(_, data)
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
function Lines:take(data)
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
    self.pipe:read_stop()
  end
  if #self.lines >= self.first then
    self:schedule()
  end
end

---@private
function Lines:schedule()
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
function Lines:hand_over(line)
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
function Lines:drain()
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
    self.options.on_handled()
  else
    vim.defer_fn(function()
      self:drain()
    end, 1) -- keys and redraws come first
  end
end

return M
