--- The conversations that an agent keeps: listed, chosen, renamed, archived, deleted.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local ui = require("acp_agent.ui")

local M = { MOST_PAGES = 20 } -- of a list

---@class acp_agent.SessionInfo
---@field id string
---@field cwd string
---@field title? string
---@field updated? string ISO 8601
---@field archived? boolean

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
  offer("load", "Open with its messages", "load")
  offer("resume", "Continue without showing its messages", "resume")
  offer("fork", "Fork", "fork")
  offer("title", "Rename", "rename")
  offer("archive", "Archive or unarchive", "archive")
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
    local what = info.archived and "unarchived" or "archived"
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
    require("acp_agent.sessions")[action](client, info, done)
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

return M
