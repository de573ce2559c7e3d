--- JSON as the protocol needs it: null and absent are told apart, and nothing that an agent sends
--- is believed to have the type that it should have.
---
--- Decoded objects keep null as `vim.NIL`. The accessors below give nil for what is absent, null or
--- of another type; `is_null` is for the few members whose null means something.

local M = {}

--- An object without members; a plain `{}` would become `[]`.
M.object = vim.empty_dict

--- A lone surrogate is no character; the line that has one is read with U+FFFD in its place.
---@param line string
---@return string
local function without_lone_surrogates(line)
  local out, at = {}, 1
  while true do
    local first, last, digits = line:find("\\u([dD][89a-fA-F]%x%x)", at)
    if not first then
      break
    end
    out[#out + 1] = line:sub(at, first - 1)
    local slashes = #line:sub(1, first - 1):match("\\*$")
    local low = line:sub(last + 1, last + 6)
    if slashes % 2 == 1 then -- an escaped backslash, then a plain u
      out[#out + 1] = line:sub(first, last)
      at = last + 1
    elseif digits:match("^[dD][89abAB]") and low:match("^\\u[dD][c-fC-F]%x%x$") then
      out[#out + 1] = line:sub(first, last) .. low
      at = last + 7
    else
      out[#out + 1] = "\\ufffd"
      at = last + 1
    end
  end
  out[#out + 1] = line:sub(at)
  return table.concat(out)
end

--- Reads one JSON text.
---@param line string
---@return boolean ok
---@return any value the value, or why it cannot be read
function M.decode(line)
  local ok, value = pcall(vim.json.decode, line)
  if not ok and (line:find("\\ud", 1, true) or line:find("\\uD", 1, true)) then
    ok, value = pcall(vim.json.decode, without_lone_surrogates(line))
  end
  return ok, value
end

--- Writes a value in one line, its strings as valid UTF-8.
---@param value any
---@return string
function M.encode(value)
  return require("acp_agent.utf8").valid(vim.json.encode(value))
end

---@param object any
---@param key string
---@return string?
function M.string(object, key)
  local value = type(object) == "table" and object[key]
  return type(value) == "string" and value or nil
end

---@param object any
---@param key string
---@return number? a finite number
function M.number(object, key)
  local value = type(object) == "table" and object[key]
  if type(value) == "number" and value == value and math.abs(value) < math.huge then
    return value
  end
  return nil
end

---@param object any
---@param key string
---@return boolean?
function M.boolean(object, key)
  local value = type(object) == "table" and object[key]
  if type(value) == "boolean" then
    return value
  end
  return nil
end

---@param object any
---@param key string
---@return table? an object or a list
function M.table(object, key)
  local value = type(object) == "table" and object[key]
  return type(value) == "table" and value or nil
end

---@param object any
---@param key string
---@param kind type
---@return any[]? the items of a list that are of a type; nil where the member is absent or no list
local function items(object, key, kind)
  local value = M.table(object, key)
  if not value or not vim.islist(value) then
    return nil
  end
  return vim.tbl_filter(function(item)
    return type(item) == kind
  end, value)
end

--- A list's items that are objects; the others are left out, as the schemas ask.
---@param object any
---@param key string
---@return table[]? nil where the member is absent or no list
function M.objects(object, key)
  return items(object, key, "table")
end

--- A list's items that are strings.
---@param object any
---@param key string
---@return string[]? nil where the member is absent or no list
function M.strings(object, key)
  return items(object, key, "string")
end

--- Whether a member is there and null, which clears what was there before.
---@param object any
---@param key string
---@return boolean
function M.is_null(object, key)
  return type(object) == "table" and object[key] == vim.NIL
end

--- Whether a capability is advertised: `{}` and true are, false, null and absent are not.
---@param object any
---@param ... string the members on the way to it
---@return boolean
function M.offers(object, ...)
  for _, key in ipairs({ ... }) do
    if type(object) ~= "table" then
      return false
    end
    object = object[key]
  end
  return object == true or type(object) == "table"
end

return M
