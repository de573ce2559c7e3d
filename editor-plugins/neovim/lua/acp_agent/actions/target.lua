--- What an action is about: the conversation, the question, the review that the user means.

local ui = require("acp_agent.ui")

local M = { PATIENCE = 700 } -- milliseconds until the user is told that an agent is starting

--- The chat of the window that the cursor is in, be it transcript, prompt or review.
---@return acp_agent.Chat?
function M.chat()
  local chat = require("acp_agent.chat")
  local buf = vim.api.nvim_get_current_buf()
  local review = require("acp_agent.review").of_buffer(buf)
  return chat.of_buffer(buf) or (review and chat.of_session(review.session)) or nil
end

--- The conversation of the window, else the last one.
---@return acp_agent.Session?
function M.session()
  local chat = M.chat()
  return chat and chat.session or require("acp_agent.session").last
end

---@param use fun(session: acp_agent.Session, chat: acp_agent.Chat)
function M.with_session(use)
  local session = M.session()
  if not session then
    return ui.notify("no conversation is open; :AcpAgent opens one", "warning")
  end
  use(session, require("acp_agent.chat").get(session))
end

--- The agent of the conversation, or the one that is named; started where it does not run.
---@param use fun(client: acp_agent.Client)
---@param name? string
function M.with_client(use, name)
  local session = M.session()
  if not name and session and not session.problem then
    return use(session.client)
  end
  require("acp_agent.client").get(name, function(problem, client)
    if not client then
      return ui.notify(problem --[[@as string]], "error")
    end
    use(client)
  end)
end

--- The permission under the cursor, else the oldest of this conversation, else of any.
---@return acp_agent.Ask?
function M.ask()
  local chat = M.chat()
  local ask = chat and chat:ask()
  if ask then
    return ask
  end
  local session = require("acp_agent.session").last
  if session and session.asks[1] then
    return session.asks[1]
  end
  for _, client in pairs(require("acp_agent.client").running) do
    for _, one in pairs(client.sessions) do
      if one.asks[1] then
        return one.asks[1]
      end
    end
  end
  return nil
end

---@param use fun(ask: acp_agent.Ask)
function M.with_ask(use)
  local ask = M.ask()
  if not ask then
    return ui.notify("there is no open request")
  end
  use(ask)
end

---@param use fun(review: acp_agent.Review)
function M.with_review(use)
  local review = require("acp_agent.review").of_buffer(vim.api.nvim_get_current_buf())
  if not review then
    return ui.notify("no diff is being reviewed here", "warning")
  end
  use(review)
end

--- Shows a conversation that was opened, or says why it was not.
---@type acp_agent.Opened
function M.show(problem, session)
  if not session then
    return ui.notify(problem or "could not open it", "error")
  end
  require("acp_agent.chat").get(session):open()
end

--- Opens a new conversation.
---@param name? string of the agent
---@param done? acp_agent.Opened
function M.new(name, done)
  done = done or M.show
  local answered = false
  vim.defer_fn(function()
    if not answered then
      ui.notify(("starting %s …"):format(name or require("acp_agent.config").current.agent))
    end
  end, M.PATIENCE)
  require("acp_agent.client").get(name, function(problem, client)
    answered = true
    if not client then
      return done(problem)
    end
    local sessions = require("acp_agent.sessions")
    sessions.create(client, sessions.cwd(), done)
  end)
end

return M
