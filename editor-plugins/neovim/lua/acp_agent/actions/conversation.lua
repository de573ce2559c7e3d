--- Opening, finding and ending conversations.

local config = require("acp_agent.config")
local target = require("acp_agent.actions.target")
local ui = require("acp_agent.ui")

---@param session acp_agent.Session
---@return acp_agent.SessionInfo
local function info_of(session)
  return { id = session.id, cwd = session.cwd, title = session.title }
end

--- Does something with a kept conversation that the user chooses.
---@param action string
---@return fun()
local function with_kept(action)
  return function()
    target.with_client(function(client)
      require("acp_agent.sessions.kept").pick(client, target.show, action)
    end)
  end
end

---@type table<string, acp_agent.Action>
local M = {}

M.open_chat = {
  desc = "show the chat; opens a conversation if there is none",
  run = function(arguments)
    local name = arguments and arguments[1]
    local session = target.session()
    if session and (not name or session.client.name == name) then
      return require("acp_agent.chat").get(session):open()
    end
    target.new(name)
  end,
}

M.toggle = {
  desc = "show or hide the chat",
  run = function()
    local session = target.session()
    local chat = session and require("acp_agent.chat").of_session(session)
    if chat and chat:window() then
      return chat:close()
    end
    M.open_chat.run()
  end,
}

M.new = {
  desc = "open a new conversation, optionally with the named agent",
  run = function(arguments)
    target.new(arguments and arguments[1])
  end,
}

M.agent = {
  desc = "choose an agent and open a conversation with it",
  run = function()
    local names = vim.tbl_keys(config.current.agents)
    table.sort(names)
    local items = vim.tbl_map(function(name)
      local command = table.concat(config.current.agents[name].command, " ")
      return { label = name, detail = command, name = name }
    end, names)
    ui.select(items, "Agents", function(item)
      if item then
        target.new(item.name)
      end
    end)
  end,
}

M.close = {
  desc = "hide the chat; the conversation continues",
  run = function()
    target.with_session(function(_, chat)
      chat:close()
    end)
  end,
}

M.finish = {
  desc = "close the conversation; it can be opened again",
  run = function()
    target.with_session(function(session, chat)
      chat:delete()
      if require("acp_agent.session").last == session then
        require("acp_agent.session").last = nil
      end
    end)
  end,
}

M.sessions = {
  desc = "choose a saved conversation",
  run = function(arguments)
    target.with_client(function(client)
      require("acp_agent.sessions.kept").pick(client, target.show)
    end, arguments and arguments[1])
  end,
}

M.load = { desc = "open a saved conversation with its messages", run = with_kept("load") }

M.resume = { desc = "continue a saved conversation without showing its messages", run = with_kept("resume") }

M.archive = { desc = "archive or unarchive a saved conversation", run = with_kept("archive") }

M.delete = { desc = "delete a saved conversation", run = with_kept("delete") }

M.fork = {
  desc = "fork this conversation",
  run = function()
    target.with_session(function(session)
      if not session.client:offers("fork") then
        return ui.notify(session.client.title .. " cannot fork", "warning")
      end
      require("acp_agent.sessions").fork(session.client, info_of(session), target.show)
    end)
  end,
}

M.rename = {
  desc = "rename this conversation",
  run = function(arguments)
    target.with_session(function(session)
      if not session.client:offers("title") then
        return ui.notify(session.client.title .. " cannot rename", "warning")
      elseif arguments and #arguments > 0 then
        local title = table.concat(arguments, " ")
        return require("acp_agent.sessions.kept").rename(session.client, info_of(session), title)
      end
      require("acp_agent.sessions.kept").act(session.client, info_of(session), "rename", target.show)
    end)
  end,
}

M.restart = {
  desc = "restart the agent and resume its conversations",
  run = function()
    target.with_session(function(session, chat)
      local all = vim.tbl_values(session.client.sessions)
      if not vim.tbl_contains(all, session) then
        all = { session }
      end
      session.client:finish("it was restarted", true)
      for _, one in ipairs(all) do
        require("acp_agent.sessions").revive(one, function(problem)
          one:notice(problem or "the agent is running again", problem and "error" or "info")
          if one == session and not problem then
            chat:open()
          end
        end)
      end
    end)
  end,
}

M.stop = {
  desc = "end the agent",
  run = function()
    target.with_session(function(session)
      session.client:finish("it was stopped", true)
    end)
  end,
}

M.login = {
  desc = "log in with one of the agent's login methods",
  run = function()
    target.with_client(function(client)
      require("acp_agent.auth").login(client)
    end)
  end,
}

M.logout = {
  desc = "log out",
  run = function()
    target.with_client(function(client)
      require("acp_agent.auth").logout(client)
    end)
  end,
}

return M
