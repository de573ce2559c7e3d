--- Opening conversations: new ones, those that the agent keeps, those whose agent has ended.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")

local M = {
  DEADLINE = 600000, -- milliseconds until one must be open: a long one takes a while to be told
}

---@alias acp_agent.Opened fun(problem: string?, session: acp_agent.Session?)

--- Asks the agent for a session; where it wants a login first, the user is offered one and it goes on.
---@param client acp_agent.Client
---@param method string
---@param params table
---@param session acp_agent.Session
---@param done acp_agent.Opened
local function open(client, method, params, session, done)
  params.cwd = session.cwd
  params.mcpServers = client.settings.mcp_servers or {}
  client:request(method, params, function(error, result)
    session.transcript.replaying = nil
    if error then
      client.sessions[session.id] = nil
      if error.code == jsonrpc.AUTH_REQUIRED and #client.auth_methods > 0 then
        return require("acp_agent.auth").offer(client, error.message, function()
          open(client, method, params, session, done)
        end)
      end
      return done(inert.line(error.message, 600))
    end
    local id = json.string(result, "sessionId") or params.sessionId
    if not id then
      return done(client.title .. " answered without a session")
    end
    session.id = id
    session:opened(result)
    client:adopt(session)
    done(nil, session)
  end, M.DEADLINE)
end

--- A new conversation.
---@param client acp_agent.Client
---@param cwd string
---@param done acp_agent.Opened
function M.create(client, cwd, done)
  open(client, "session/new", {}, require("acp_agent.session").new(client, cwd), done)
end

--- One that the agent keeps, with everything that was said in it.
---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param done acp_agent.Opened
function M.load(client, info, done)
  if client.sessions[info.id] then
    return done(nil, client.sessions[info.id]) -- it is open
  end
  local session = require("acp_agent.session").new(client, info.cwd)
  session.id, session.title = info.id, info.title
  session.transcript.replaying = true
  client.sessions[info.id] = session -- what was said comes before the response
  open(client, "session/load", { sessionId = info.id }, session, done)
end

--- One that the agent keeps, without what was said in it.
---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param done acp_agent.Opened
function M.resume(client, info, done)
  if client.sessions[info.id] then
    return done(nil, client.sessions[info.id])
  end
  local session = require("acp_agent.session").new(client, info.cwd)
  session.id, session.title = info.id, info.title
  client.sessions[info.id] = session
  open(client, "session/resume", { sessionId = info.id }, session, done)
end

--- A new one that begins with what another one holds.
---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param done acp_agent.Opened
function M.fork(client, info, done)
  local session = require("acp_agent.session").new(client, info.cwd)
  session.title = info.title
  open(client, "session/fork", { sessionId = info.id }, session, function(problem, forked)
    if problem or not client:offers("load") then
      return done(problem, forked)
    end
    -- Nothing is replayed by a fork; loading it shows what it begins with.
    client.sessions[forked.id] = nil
    M.load(client, { id = forked.id, cwd = info.cwd, title = info.title }, done)
  end)
end

--- Starts the agent of a session again, and goes on in the same conversation.
---@param session acp_agent.Session
---@param done acp_agent.Opened
function M.revive(session, done)
  require("acp_agent.client").get(session.client.name, function(problem, client)
    if not client then
      return done(problem)
    end
    session.client = client
    if session.id == "" then
      return open(client, "session/new", {}, session, done)
    end
    local method = client:offers("resume") and "session/resume" or client:offers("load") and "session/load"
    if not method then
      return done(client.title .. " cannot go on with a conversation; start a new one")
    end
    if method == "session/load" then -- it tells everything again
      session.transcript:notice("again from the beginning:", "info")
      session.transcript.replaying = true
    end
    client.sessions[session.id] = session
    open(client, method, { sessionId = session.id }, session, done)
  end)
end

--- The folder in which a new conversation works.
---@return string
function M.cwd()
  return vim.fs.normalize(vim.fn.getcwd(), { expand_env = false })
end

return M
