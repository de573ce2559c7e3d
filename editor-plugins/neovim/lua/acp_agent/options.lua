--- What can be chosen in a session: config options of any kind, and the older modes.

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local ui = require("acp_agent.ui")

---@class acp_agent.ConfigOption
---@field id string
---@field name string
---@field description string
---@field category string
---@field kind "select"|"boolean"
---@field value string|boolean
---@field choices { value: string, name: string, description: string, group?: string }[]

local M = {}

--- Reads options as the protocol has them (SessionConfigOption), grouped or not; those of a kind that is
--- not known are left out.
---@param options table[]
---@return acp_agent.ConfigOption[]
function M.read(options)
  local read = {}
  for _, option in ipairs(options) do
    local kind, id = json.string(option, "type"), json.string(option, "id")
    local one = {
      id = id,
      name = json.string(option, "name") or id,
      description = json.string(option, "description") or "",
      category = json.string(option, "category") or "",
      kind = kind,
      choices = {},
    }
    local function add(choices, group)
      for _, choice in ipairs(choices) do
        local value = json.string(choice, "value")
        if value then
          table.insert(one.choices, {
            value = value,
            name = json.string(choice, "name") or value,
            description = json.string(choice, "description") or "",
            group = group,
          })
        elseif json.objects(choice, "options") then
          add(json.objects(choice, "options"), json.string(choice, "name") or "")
        end
      end
    end
    if kind == "select" then
      one.value = json.string(option, "currentValue")
      add(json.objects(option, "options") or {})
    elseif kind == "boolean" then
      one.value = json.boolean(option, "currentValue")
    end
    if id and one.value ~= nil then
      read[#read + 1] = one
    end
  end
  return read
end

--- The name of what is chosen in an option.
---@param option acp_agent.ConfigOption
---@return string
function M.chosen(option)
  if option.kind == "boolean" then
    return option.value and "on" or "off"
  end
  for _, choice in ipairs(option.choices) do
    if choice.value == option.value then
      return choice.name
    end
  end
  return tostring(option.value)
end

--- The first option of a category.
---@param session acp_agent.Session
---@param category string
---@return acp_agent.ConfigOption?
function M.of_category(session, category)
  for _, option in ipairs(session.options) do
    if option.category == category then
      return option
    end
  end
  return nil
end

--- The name of the mode that is on, "" where there are none.
---@param session acp_agent.Session
---@return string
function M.mode(session)
  local option = M.of_category(session, "mode")
  if option then
    return M.chosen(option)
  end
  for _, mode in ipairs(session.modes and session.modes.available or {}) do
    if mode.id == session.modes.current then
      return json.string(mode, "name") or session.modes.current
    end
  end
  return ""
end

---@param session acp_agent.Session
---@param option acp_agent.ConfigOption
---@param value string|boolean
function M.set(session, option, value)
  local params = { sessionId = session.id, configId = option.id, value = value }
  if type(value) == "boolean" then
    params.type = "boolean"
  end
  session.client:request("session/set_config_option", params, function(error, result)
    if error then
      return ui.notify(("%s was not set: %s"):format(option.name, error.message), "error")
    end
    session:set_options(json.objects(result, "configOptions"))
    session.on_change("state")
  end)
end

---@param session acp_agent.Session
---@param option acp_agent.ConfigOption
function M.choose_value(session, option)
  if option.kind == "boolean" then
    return M.set(session, option, not option.value)
  end
  local items = vim.tbl_map(function(choice)
    local group = choice.group and (choice.group .. " / ") or ""
    local mark = choice.value == option.value and "● " or "  "
    return { label = mark .. group .. choice.name, detail = choice.description, value = choice.value }
  end, option.choices)
  ui.select(items, option.name, function(item)
    if item and item.value ~= option.value then
      M.set(session, option, item.value)
    end
  end)
end

---@param session acp_agent.Session
local function choose_mode(session)
  local items = vim.tbl_map(function(mode)
    local id = json.string(mode, "id") or ""
    local mark = id == session.modes.current and "● " or "  "
    local name = json.string(mode, "name") or id
    return { label = mark .. name, detail = json.string(mode, "description"), id = id }
  end, session.modes.available)
  ui.select(items, "Mode", function(item)
    if item then
      session.client:request("session/set_mode", { sessionId = session.id, modeId = item.id }, function(error)
        if error then
          return ui.notify("could not set the mode: " .. error.message, "error")
        end
        session.modes.current = item.id
        session.on_change("state")
      end)
    end
  end)
end

--- Lets the user choose in one category, or where it is left out among all options.
---@param session acp_agent.Session
---@param category? "mode"|"model"|"thought_level"|string
function M.choose(session, category)
  if category then
    local option = M.of_category(session, category)
    if option then
      return M.choose_value(session, option)
    elseif category == "mode" and session.modes then
      return choose_mode(session)
    end
    local what = category:gsub("_", " ")
    return ui.notify(("%s offers no choice of %s"):format(session.client.title, what), "warning")
  end
  local items = vim.tbl_map(function(option)
    local label = ("%s: %s"):format(option.name, M.chosen(option))
    return { label = label, detail = option.description, option = option }
  end, session.options)
  if #items == 0 and session.modes then
    return choose_mode(session)
  elseif #items == 0 then
    return ui.notify(inert.line(session.client.title) .. " offers nothing to choose", "warning")
  end
  ui.select(items, "Options", function(item)
    if item then
      M.choose_value(session, item.option)
    end
  end)
end

return M
