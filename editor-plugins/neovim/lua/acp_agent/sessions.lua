--- Opening conversations: new ones, and those that the agent keeps.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")
local ui = require("acp_agent.ui")

local M = {
  MOST_PAGES = 20, -- of a list of conversations
  DEADLINE = 600000, -- milliseconds until one has to be open: a long one takes a while to be told
}

---@class acp_agent.SessionInfo
---@field id string
---@field cwd string
---@field title? string
---@field updated? string ISO 8601
---@field archived? boolean

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

--- The conversations that the agent keeps, the newest first as it gives them.
---@param client acp_agent.Client
---@param cwd string? only those of this folder
---@param done fun(problem: string?, sessions: acp_agent.SessionInfo[]?)
function M.list(client, cwd, done)
  local found, pages = {}, 0
  local function page(cursor)
    pages = pages + 1
    local params = json.object()
    params.cwd, params.cursor = cwd, cursor
    if client:offers("archive") then
      params.archived = "include"
    end
    client:request("session/list", params, function(error, result)
      if error then
        return done(inert.line(error.message, 600))
      end
      for _, one in ipairs(json.objects(result, "sessions") or {}) do
        local id, folder = json.string(one, "sessionId"), json.string(one, "cwd")
        if id and folder then
          found[#found + 1] = {
            id = id,
            cwd = folder,
            title = json.string(one, "title"),
            updated = json.string(one, "updatedAt"),
            archived = json.boolean(one, "archived"),
          }
        end
      end
      local next_cursor = json.string(result, "nextCursor")
      if next_cursor and next_cursor ~= cursor and pages < M.MOST_PAGES then
        return page(next_cursor)
      end
      done(nil, found)
    end)
  end
  page(nil)
end

--- What can be done with a conversation that the agent keeps.
---@param client acp_agent.Client
---@return { label: string, action: string }[]
function M.actions(client)
  local actions = {}
  local function offer(capability, label, action)
    if client:offers(capability) then
      actions[#actions + 1] = { label = label, action = action }
    end
  end
  offer("load", "Open, with what was said", "load")
  offer("resume", "Go on, without what was said", "resume")
  offer("fork", "Fork", "fork")
  offer("title", "Rename", "rename")
  offer("archive", "Archive, or take out of the archive", "archive")
  offer("delete", "Delete", "delete")
  return actions
end

---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param title string
function M.rename(client, info, title)
  client:request("session/set_title", { sessionId = info.id, title = title }, function(error)
    if error then
      return ui.notify("not renamed: " .. error.message, "error")
    end
    local open_one = client.sessions[info.id]
    if open_one then
      open_one.title = title
      open_one.on_change("state")
    end
    ui.notify("renamed to " .. title)
  end)
end

---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param done? fun()
function M.delete(client, info, done)
  local name = info.title or info.id
  local choices = { { label = "Keep it" }, { label = "Delete it", yes = true } }
  ui.select(choices, ("Delete “%s”?"):format(name), function(choice)
    if not choice or not choice.yes then
      return
    end
    client:request("session/delete", { sessionId = info.id }, function(error)
      if error then
        return ui.notify("not deleted: " .. error.message, "error")
      end
      local open_one = client.sessions[info.id]
      if open_one then
        client.sessions[info.id] = nil
        open_one:agent_ended("this conversation was deleted", true)
      end
      ui.notify("deleted " .. name)
      if done then
        done()
      end
    end)
  end)
end

---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
local function archive(client, info)
  local method = info.archived and "session/unarchive" or "session/archive"
  client:request(method, { sessionId = info.id }, function(error)
    local what = info.archived and "taken out of the archive" or "archived"
    ui.notify(error and error.message or what, error and "error" or "info")
  end)
end

--- Does one of `actions` with a conversation.
---@param client acp_agent.Client
---@param info acp_agent.SessionInfo
---@param action string
---@param done acp_agent.Opened for those that open it
function M.act(client, info, action, done)
  if action == "rename" then
    ui.input("Title", info.title, function(title)
      if title and vim.trim(title) ~= "" then
        M.rename(client, info, vim.trim(title))
      end
    end)
  elseif action == "delete" then
    M.delete(client, info)
  elseif action == "archive" then
    archive(client, info)
  else
    M[action](client, info, done)
  end
end

--- Lets the user choose a conversation, and what to do with it.
---@param client acp_agent.Client
---@param done acp_agent.Opened
---@param action? string does this, where it is offered
function M.pick(client, done, action)
  if not client:offers("list") then
    return done(client.title .. " keeps no list of conversations")
  end
  local actions = M.actions(client)
  if #actions == 0 then
    return done(client.title .. " cannot open conversations again")
  end
  M.list(client, nil, function(problem, sessions)
    if problem then
      return done(problem)
    elseif #sessions == 0 then
      return done(client.title .. " keeps no conversations yet")
    end
    local here = vim.fn.getcwd()
    local items = vim.tbl_map(function(info)
      local when = (info.updated or ""):gsub("T", " "):sub(1, 16)
      local where = info.cwd == here and "" or (" in " .. vim.fn.fnamemodify(info.cwd, ":~"))
      local state = info.archived and " (archived)" or ""
      return { label = (info.title or info.id) .. state, detail = when .. where, info = info }
    end, sessions)
    ui.select(items, "Conversations of " .. client.title, function(item)
      if not item then
        return
      end
      if action then
        return M.act(client, item.info, action, done)
      end
      ui.select(actions, item.info.title or item.info.id, function(choice)
        if choice then
          M.act(client, item.info, choice.action, done)
        end
      end)
    end)
  end)
end

--- The folder in which a new conversation works.
---@return string
function M.cwd()
  return vim.fs.normalize(vim.fn.getcwd(), { expand_env = false })
end

return M
