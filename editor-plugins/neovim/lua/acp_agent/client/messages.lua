--- What an agent sends that is no answer: updates for its sessions, notices, lines that are no message.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")

local MOST_EARLY_UPDATES = 1000 -- of a session that is not known yet

---@class acp_agent.Client
local Client = {}

--- Says something in all open sessions, or as a message where there are none.
---@param text string
---@param severity "info"|"warning"|"error"
function Client:tell(text, severity)
  local session = next(self.sessions)
  if not session then
    require("acp_agent.ui").notify(self.name .. ": " .. text, severity)
  end
  for _, one in pairs(self.sessions) do
    one:notice(text, severity)
  end
end

---@private
---@param line string
---@param reason string
function Client:got_garbage(line, reason)
  self.garbage = self.garbage + 1
  if self.garbage <= 3 then
    local shown = inert.line(vim.trim(line:sub(1, 400)), 100)
    self:tell(("the agent sent an invalid line (%s): %s"):format(reason, shown), "warning")
  elseif self.garbage == 4 then
    self:tell("the agent keeps sending invalid lines", "warning")
  end
end

---@private
---@param id any
---@param use fun(session: acp_agent.Session)
function Client:with_session(id, use)
  local session = type(id) == "string" and self.sessions[id]
  if session then
    use(session)
  end
end

--- Makes a session known, with the updates that came before its response.
---@param session acp_agent.Session
function Client:adopt(session)
  self.sessions[session.id] = session
  local early = self.early[session.id] or {}
  self.early[session.id] = nil
  for _, update in ipairs(early) do
    session:update(update)
  end
end

---@private
---@param method string
---@param params table
function Client:notified(method, params)
  if method == "session/update" then
    local id, update = json.string(params, "sessionId"), json.table(params, "update")
    if not id or not update then
      return
    end
    local session = self.sessions[id]
    if session then
      session:update(update)
    else
      local early = self.early[id] or {}
      if #early < MOST_EARLY_UPDATES and vim.tbl_count(self.early) < 16 then
        early[#early + 1] = update
        self.early[id] = early
      end
    end
  elseif method == "elicitation/complete" then
    require("acp_agent.elicitation").completed(json.string(params, "elicitationId"))
  end
end

return Client
