--- A session in a few words, for statuslines and the bars above the windows.

local inert = require("acp_agent.inert")
local options = require("acp_agent.options")

local M = {}

---@param count number
---@return string
function M.short(count)
  if count >= 1e6 then
    return ("%.1fM"):format(count / 1e6)
  elseif count >= 1000 then
    return ("%.0fk"):format(count / 1000)
  end
  return ("%d"):format(count)
end

--- How full the context is, and what the session cost.
---@param usage acp_agent.Usage?
---@return string
function M.usage(usage)
  if not usage then
    return ""
  end
  local text = M.short(usage.used)
  if usage.size > 0 then
    text = ("%s/%s %d%%"):format(text, M.short(usage.size), usage.used / usage.size * 100)
  end
  if usage.cost and usage.cost.amount > 0 then
    local currency = usage.cost.currency
    text = ("%s %s%.2f"):format(text, currency == "USD" and "$" or currency .. " ", usage.cost.amount)
  end
  return text
end

--- What the session is doing.
---@param session acp_agent.Session
---@return string
function M.state(session)
  if session.problem then
    return "ended"
  elseif session.id == "" then
    return "starting"
  elseif #session.asks > 0 or next(session.questions) then
    return "asks you"
  elseif session.turn then
    return session.turn.cancelled and "cancelling" or "working"
  end
  return "idle"
end

--- The parts of a session's status, plain text.
---@param session acp_agent.Session
---@return string[]
function M.parts(session)
  local parts = { session.client.title, M.state(session) }
  local mode = options.mode(session)
  local model = options.of_category(session, "model")
  for _, part in ipairs({
    mode,
    model and options.chosen(model) or "",
    session.plan and ("plan %d/%d"):format(session.plan.done, session.plan.all) or "",
    #session.queue > 0 and ("%d queued"):format(#session.queue) or "",
    M.usage(session.usage),
  }) do
    if part ~= "" then
      parts[#parts + 1] = part
    end
  end
  return parts
end

--- A session's status for 'statusline', with nothing in it that would be expanded.
---@param session acp_agent.Session?
---@return string "" where there is none
function M.line(session)
  if not session then
    return ""
  end
  local parts = vim.tbl_map(function(part)
    return inert.statusline(part, 40)
  end, M.parts(session))
  return table.concat(parts, " · ")
end

return M
