--- The fields of a form (ElicitationSchema): what they take, and what was typed read as that.

local json = require("acp_agent.json")

local M = {}

---@class acp_agent.Field
---@field name string
---@field label string
---@field kind "string"|"number"|"integer"|"boolean"|"one"|"many"
---@field required boolean
---@field choices? { label: string, value: string }[]
---@field schema table ElicitationPropertySchema

---@param schema table
---@return { label: string, value: string }[]?
local function choices_of(schema)
  local plain = json.strings(schema, "enum")
  if plain then
    return vim.tbl_map(function(value)
      return { label = value, value = value }
    end, plain)
  end
  local titled = json.objects(schema, "oneOf") or json.objects(schema, "anyOf")
  if titled then
    local choices = {}
    for _, one in ipairs(titled) do
      local value = json.string(one, "const")
      if value then
        choices[#choices + 1] = { label = json.string(one, "title") or value, value = value }
      end
    end
    return choices
  end
  return nil
end

--- The fields of a form, the required ones first, else by name; JSON keeps no order.
---@param schema table ElicitationSchema
---@return acp_agent.Field[]? fields
---@return string? problem a field that cannot be asked for
function M.of(schema)
  local required = {}
  for _, name in ipairs(json.strings(schema, "required") or {}) do
    required[name] = true
  end
  local fields = {}
  for name, property in pairs(json.table(schema, "properties") or {}) do
    local kind = json.string(property, "type")
    local label = json.string(property, "title") or tostring(name)
    local field = { name = name, label = label, schema = property, required = required[name] == true }
    if kind == "string" then
      field.choices = choices_of(property)
      field.kind = field.choices and "one" or "string"
    elseif kind == "array" then
      field.choices = choices_of(json.table(property, "items") or {})
      field.kind = "many"
    elseif kind == "number" or kind == "integer" or kind == "boolean" then
      field.kind = kind
    end
    if type(name) ~= "string" or not field.kind or (field.kind == "many" and not field.choices) then
      return nil, tostring(name)
    end
    fields[#fields + 1] = field
  end
  table.sort(fields, function(a, b)
    if a.required ~= b.required then
      return a.required
    end
    return a.name < b.name
  end)
  return fields
end

--- What was typed as the field's type, or why it does not fit.
---@param field acp_agent.Field
---@param text string
---@return any value nil for an optional field left empty
---@return string? problem
function M.read(field, text)
  local schema = field.schema
  if text == "" and not field.required then
    return nil
  end
  if field.kind == "number" or field.kind == "integer" then
    local value = tonumber(vim.trim(text))
    if not value or value ~= value or math.abs(value) == math.huge then
      return nil, "enter a number"
    elseif field.kind == "integer" and value % 1 ~= 0 then
      return nil, "enter a whole number"
    end
    local least, most = json.number(schema, "minimum"), json.number(schema, "maximum")
    if least and value < least then
      return nil, ("at least %g"):format(least)
    elseif most and value > most then
      return nil, ("at most %g"):format(most)
    end
    return value
  end
  local length = vim.fn.strchars(text)
  local least, most = json.number(schema, "minLength"), json.number(schema, "maxLength")
  if text == "" and field.required and not least then
    return nil, "it is needed"
  elseif least and length < least then
    return nil, ("at least %d characters"):format(least)
  elseif most and length > most then
    return nil, ("at most %d characters"):format(most)
  end
  return text
end

return M
