--- What an agent may ask of the editor, by method; all else is answered that there is no such method.

local config = require("acp_agent.config")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

local M = {}

---@param self acp_agent.Client
---@param params table
---@param respond acp_agent.Respond
---@return acp_agent.Session? nil where it was answered that there is none
local function session_of(self, params, respond)
  local session = self.sessions[json.string(params, "sessionId") or ""]
  if not session then
    local named = inert.line(tostring(params.sessionId), 80)
    respond(nil, { code = jsonrpc.NOT_FOUND, message = "session not found: " .. named })
  end
  return session
end

local function in_session(serve)
  return function(self, params, respond)
    local session = session_of(self, params, respond)
    if session then
      return serve(self, session, params, respond)
    end
  end
end

local function terminal(method)
  return function(self, params, respond)
    if not config.current.terminals then
      return respond(nil, { code = jsonrpc.METHOD_NOT_FOUND, message = "terminals are disabled" })
    end
    if session_of(self, params, respond) then
      self.terminals[method](self.terminals, params, respond)
    end
  end
end

local SERVE = {
  ["session/request_permission"] = in_session(function(_, session, params, respond)
    return session:ask_permission(params, respond)
  end),
  ["fs/read_text_file"] = in_session(function(_, session, params, respond)
    session:read_file(params, respond)
  end),
  ["fs/write_text_file"] = in_session(function(_, session, params, respond)
    session:write_file(params, respond)
  end),
  ["terminal/create"] = terminal("create"),
  ["terminal/output"] = terminal("current_output"),
  ["terminal/wait_for_exit"] = terminal("wait_for_exit"),
  ["terminal/kill"] = terminal("kill"),
  ["terminal/release"] = terminal("release"),
  ["elicitation/create"] = function(self, params, respond)
    return require("acp_agent.elicitation").ask(self, params, respond)
  end,
}

--- Answers a request of the agent's.
---@param self acp_agent.Client
---@param method string
---@param params table
---@param respond acp_agent.Respond
---@return function? withdraw
function M.serve(self, method, params, respond)
  local serve = SERVE[method]
  if not serve then
    return respond(nil, {
      code = jsonrpc.METHOD_NOT_FOUND,
      message = "method not found: " .. inert.line(method, 80),
    })
  end
  return serve(self, params, respond)
end

return M
