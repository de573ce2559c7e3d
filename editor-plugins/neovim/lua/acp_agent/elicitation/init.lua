--- Questions of the agent: forms, asked field by field, and pages to open (`elicitation/create`).

local form = require("acp_agent.elicitation.fields")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local jsonrpc = require("acp_agent.jsonrpc")
local ui = require("acp_agent.ui")

local M = {}

---@param field acp_agent.Field
---@param prompt string
---@param given fun(done: boolean, value: any) false: the user gave up
local function ask_many(field, prompt, given)
  local picked = {}
  for _, value in ipairs(json.strings(field.schema, "default") or {}) do
    picked[value] = true
  end
  local function again()
    local items = { { label = "Done", done = true } }
    for _, choice in ipairs(field.choices) do
      local mark = picked[choice.value] and "[x] " or "[ ] "
      items[#items + 1] = { label = mark .. choice.label, value = choice.value }
    end
    ui.select(items, prompt, function(item)
      if not item then
        return given(false)
      elseif not item.done then
        picked[item.value] = not picked[item.value] or nil
        return again()
      end
      local values = {}
      for _, choice in ipairs(field.choices) do
        if picked[choice.value] then
          values[#values + 1] = choice.value
        end
      end
      local least = json.number(field.schema, "minItems") or (field.required and 1 or 0)
      local most = json.number(field.schema, "maxItems") or math.huge
      if #values < least or #values > most then
        ui.notify(("%s: choose %d or more"):format(field.label, least), "warning")
        return again()
      end
      given(true, values)
    end)
  end
  again()
end

---@param field acp_agent.Field
---@param message string
---@param given fun(done: boolean, value: any)
local function ask_field(field, message, given)
  local about = json.string(field.schema, "description")
  local prompt = ("%s — %s%s%s"):format(
    message,
    field.label,
    about and (" (" .. about .. ")") or "",
    field.required and "" or " [optional]"
  )
  if field.kind == "many" then
    return ask_many(field, prompt, given)
  elseif field.kind == "one" or field.kind == "boolean" then
    local items = field.choices or { { label = "Yes", value = true }, { label = "No", value = false } }
    items = vim.list_extend({}, items)
    if not field.required then
      items[#items + 1] = { label = "(leave it out)" }
    end
    return ui.select(items, prompt, function(item)
      if not item then
        return given(false)
      end
      given(true, item.value)
    end)
  end
  local default = json.string(field.schema, "default")
  local number = json.number(field.schema, "default")
  local function again(text)
    ui.input(prompt, text, function(typed)
      if not typed then
        return given(false)
      end
      local value, problem = form.read(field, typed)
      if problem then
        ui.notify(field.label .. ": " .. problem, "warning")
        return again(typed)
      end
      given(true, value)
    end)
  end
  again(default or (number and ("%g"):format(number)) or nil)
end

---@param who string
---@param params table
---@param finish fun(result: table)
---@param withdrawn fun(): boolean
local function ask_form(who, params, finish, withdrawn)
  local fields = form.of(json.table(params, "requestedSchema") or {})
  local message = ("%s asks: %s"):format(who, json.string(params, "message") or "")
  if not fields then
    ui.notify(message .. " (this form cannot be shown here)", "warning")
    return finish({ action = "decline" })
  end
  local content = json.object()
  local function next_field(index)
    if withdrawn() then
      return
    end
    local field = fields[index]
    if not field then
      return finish({ action = "accept", content = content })
    end
    ask_field(field, message, function(done, value)
      if withdrawn() then
        return
      elseif not done then
        return finish({ action = "cancel" })
      end
      content[field.name] = value
      next_field(index + 1)
    end)
  end
  if #fields == 0 then
    return ui.select({ { label = "Yes", value = true }, { label = "No" } }, message, function(item)
      if item and item.value then
        return finish({ action = "accept", content = content })
      end
      finish({ action = item and "decline" or "cancel" })
    end)
  end
  next_field(1)
end

---@param who string
---@param params table
---@param finish fun(result: table)
local function ask_page(who, params, finish)
  local url = json.string(params, "url") or ""
  local message = json.string(params, "message") or ""
  -- Shown whole: what is opened must be what was read.
  if not url:match("^https?://[%w%-._~:/?#%[%]@!$&'()*+,;=%%]+$") or #url > 2000 then
    ui.notify(("%s wants to open an address that is none: %s"):format(who, url), "warning")
    return finish({ action = "decline" })
  end
  local choices = {
    { label = "Open " .. url, open = true },
    { label = "Copy address", copy = true },
    { label = "Decline" },
  }
  ui.select(choices, ("%s asks: %s"):format(who, message), function(choice)
    if not choice then
      return finish({ action = "cancel" })
    elseif choice.open then
      local _, problem = vim.ui.open(url)
      if problem then
        ui.notify(problem .. "; open it yourself: " .. url, "warning")
      end
      return finish({ action = "accept" })
    elseif choice.copy then
      vim.fn.setreg("+", url)
      vim.fn.setreg('"', url)
      return finish({ action = "accept" })
    end
    finish({ action = "decline" })
  end)
end

--- Answers `elicitation/create`; a mode that is not known is not shown as one that is.
---@param client acp_agent.Client
---@param params table CreateElicitationRequest
---@param respond acp_agent.Respond
---@return function? withdraw
function M.ask(client, params, respond)
  local ask = ({ form = ask_form, url = ask_page })[json.string(params, "mode")]
  if not ask then
    local named = inert.line(tostring(params.mode), 40)
    respond(nil, { code = jsonrpc.INVALID_PARAMS, message = "mode is not supported: " .. named })
    return nil
  end
  local session = client.sessions[json.string(params, "sessionId") or ""]
  local gone = false
  local function is_gone()
    return gone or client.state == "ended"
  end
  local function is_over()
    gone = true
    if session then
      session:asking(params, false)
    end
  end
  local function finish(result)
    is_over()
    respond(result)
  end
  if session then
    session:asking(params, true)
  end
  local text = ("%s asks: %s"):format(client.title, json.string(params, "message") or "")
  local withdraw = require("acp_agent.attention").ask(text, {
    here = function()
      local chats = require("acp_agent.chat")
      local chat = session and chats.of_session(session)
      return not chat or chats.of_buffer(vim.api.nvim_get_current_buf()) == chat
    end,
    show = function()
      if not is_gone() then
        ask(client.title, params, finish, is_gone)
      end
    end,
  })
  return function()
    is_over()
    withdraw()
  end
end

--- The agent says that the user is done with a page.
---@param id string?
function M.completed(id)
  if id then
    ui.notify("done in the browser")
  end
end

return M
