--- A conversation's files: what the agent reads and writes through the editor.

local config = require("acp_agent.config")
local files = require("acp_agent.files")
local paths = require("acp_agent.paths")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

---@class acp_agent.Session
local Session = {}

local CODES = {
  missing = jsonrpc.NOT_FOUND,
  outside = jsonrpc.INVALID_PARAMS,
  refused = jsonrpc.INTERNAL_ERROR,
}

---@param respond acp_agent.Respond
---@param problem acp_agent.FileProblem
local function refuse(respond, problem)
  respond(nil, { code = CODES[problem.kind], message = inert.line(problem.message, 600) })
end

--- Shows soon in the buffers what a command of the agent's changed on disk.
function Session:catch_up_soon()
  if not self.catching_up then
    self.catching_up = true
    vim.defer_fn(function()
      self.catching_up = false
      files.catch_up(self.roots)
    end, 100)
  end
end

--- Answers `fs/read_text_file`.
---@param params table ReadTextFileRequest
---@param respond acp_agent.Respond
function Session:read_file(params, respond)
  if not config.current.files.read then
    return respond(nil, { code = jsonrpc.METHOD_NOT_FOUND, message = "reading is disabled" })
  end
  local path, problem = paths.resolve(params.path, self.roots)
  if not path then
    return refuse(respond, problem)
  end
  local text, why = files.read(path)
  if not text then
    return refuse(respond, why)
  end
  self.seen[path] = text
  local line, limit = json.number(params, "line"), json.number(params, "limit")
  if line or limit then
    local lines = require("acp_agent.diff").lines(text)
    local first = math.max(1, line or 1)
    text = table.concat(vim.list_slice(lines, first, limit and first + limit - 1 or #lines))
  end
  respond({ content = text })
end

--- Answers `fs/write_text_file`.
---@param params table WriteTextFileRequest
---@param respond acp_agent.Respond
function Session:write_file(params, respond)
  if not config.current.files.write then
    return respond(nil, { code = jsonrpc.METHOD_NOT_FOUND, message = "writing is disabled" })
  end
  local content = json.string(params, "content")
  if not content then
    return respond(nil, { code = jsonrpc.INVALID_PARAMS, message = "content must be a string" })
  end
  local path, problem = paths.resolve(params.path, self.roots)
  if not path then
    return refuse(respond, problem)
  end
  local outcome = require("acp_agent.review.outcome")
  local text, reason = outcome.wanted(self, path, content)
  local why = not text and { kind = "refused", message = reason }
    or files.write(path, text, { save = config.current.files.save, seen = self.seen[path] })
  if why then
    outcome.refused(self, path)
    return refuse(respond, why)
  end
  self.seen[path] = text
  respond(json.object())
end

return Session
