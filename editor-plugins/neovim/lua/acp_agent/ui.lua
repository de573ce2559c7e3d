--- The editor's ways of telling and asking, with texts of others made inert.

local inert = require("acp_agent.inert")

local M = {}

local LEVELS = { info = vim.log.levels.INFO, warning = vim.log.levels.WARN, error = vim.log.levels.ERROR }

--- How much can be told. What does not fit into a line is followed by a prompt for a key, which holds
--- up everything: no running agent shall wait for that.
---@return integer bytes
local function room()
  if next(require("acp_agent.client").running) then
    return math.max(30, vim.v.echospace - 14)
  end
  return 600
end

--- Tells the user something.
---@param text string
---@param severity? "info"|"warning"|"error"
function M.notify(text, severity)
  local who = "acp-agent: " -- which may be the name of the agent as well
  local shown = who .. inert.line(vim.startswith(text, who) and text:sub(#who + 1) or text, room())
  vim.notify(shown, LEVELS[severity or "info"], { title = "acp-agent" })
end

---@class acp_agent.Choice
---@field label string
---@field detail? string

--- Lets the user choose one, by `vim.ui.select`.
---@generic T
---@param choices T[] with a `label`, and a `detail` where there is more to say
---@param prompt string
---@param chosen fun(choice: T?) nil where the user chose none
function M.select(choices, prompt, chosen)
  vim.ui.select(choices, {
    prompt = inert.line(prompt, 400),
    kind = "acp-agent",
    format_item = function(choice)
      local detail = choice.detail and choice.detail ~= "" and ("  — " .. choice.detail) or ""
      return inert.line(choice.label .. detail, 200)
    end,
  }, vim.schedule_wrap(chosen))
end

--- Lets the user type a line, by `vim.ui.input`.
---@param prompt string
---@param default? string
---@param given fun(text: string?) nil where the user gave up
function M.input(prompt, default, given)
  vim.ui.input({
    prompt = inert.line(prompt, 400) .. ": ",
    default = default and inert.line(default, 2000) or nil,
  }, vim.schedule_wrap(given))
end

return M
