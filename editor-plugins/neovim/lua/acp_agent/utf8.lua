--- UTF-8: what is valid, and where text may be cut.

local M = {}

--- The length of the well-formed character that begins at a byte (RFC 3629); nil where none does.
---@param text string
---@param at integer
---@return integer?
local function length_at(text, at)
  local a, b, c, d = text:byte(at, at + 3)
  local function tail(byte)
    return byte and byte >= 0x80 and byte <= 0xBF
  end
  if a < 0x80 then
    return 1
  elseif a >= 0xC2 and a <= 0xDF then
    return tail(b) and 2 or nil
  elseif a >= 0xE0 and a <= 0xEF then
    if not (tail(b) and tail(c)) then
      return nil
    end
    if (a == 0xE0 and b < 0xA0) or (a == 0xED and b > 0x9F) then
      return nil
    end
    return 3
  elseif a >= 0xF0 and a <= 0xF4 then
    if not (tail(b) and tail(c) and tail(d)) then
      return nil
    end
    if (a == 0xF0 and b < 0x90) or (a == 0xF4 and b > 0x8F) then
      return nil
    end
    return 4
  end
  return nil
end

--- The byte at which text stops being valid UTF-8; nil where all of it is.
---@param text string
---@return integer?
function M.first_invalid(text)
  local at = text:find("[\128-\255]")
  while at do
    local length = length_at(text, at)
    if not length then
      return at
    end
    at = text:find("[\128-\255]", at + length)
  end
  return nil
end

--- The text with U+FFFD in place of every byte that belongs to no character.
---@param text string
---@return string
function M.valid(text)
  local bad = M.first_invalid(text)
  if not bad then
    return text
  end
  local out = {}
  while bad do
    out[#out + 1] = text:sub(1, bad - 1)
    out[#out + 1] = "\239\191\189"
    text = text:sub(bad + 1)
    bad = M.first_invalid(text)
  end
  out[#out + 1] = text
  return table.concat(out)
end

--- The longest beginning of at most `limit` bytes that cuts no character.
---@param text string
---@param limit integer
---@return string
function M.head(text, limit)
  if #text <= limit then
    return text
  end
  local stop = limit
  while
    stop > 0
    and stop > limit - 4
    and (text:byte(stop + 1) or 0) >= 0x80
    and text:byte(stop + 1) <= 0xBF
  do
    stop = stop - 1
  end
  return text:sub(1, stop)
end

--- The longest end of at most `limit` bytes that cuts no character.
---@param text string
---@param limit integer
---@return string
function M.tail(text, limit)
  if #text <= limit then
    return text
  end
  local start = #text - limit + 1
  while
    start <= #text
    and start < #text - limit + 5
    and text:byte(start) >= 0x80
    and text:byte(start) <= 0xBF
  do
    start = start + 1
  end
  return text:sub(start)
end

--- The bytes at the end that begin a character whose rest may still come.
---@param text string
---@return string whole
---@return string rest
function M.split_incomplete(text)
  for back = 1, math.min(3, #text) do
    local byte = text:byte(#text - back + 1)
    if byte >= 0xC2 and byte <= 0xF4 then
      local wanted = byte >= 0xF0 and 4 or byte >= 0xE0 and 3 or 2
      if back < wanted then
        return text:sub(1, #text - back), text:sub(#text - back + 1)
      end
      return text, ""
    elseif byte < 0x80 then
      return text, ""
    end
  end
  return text, ""
end

local MARK = "\239\187\191" -- the byte order mark, U+FEFF

--- Splits the byte order mark off a text: it says how a file is written, and is no part of what it says.
---@param text string
---@return string mark "" where there is none
---@return string rest
function M.split_mark(text)
  if vim.startswith(text, MARK) then
    return MARK, text:sub(#MARK + 1)
  end
  return "", text
end

M.MARK = MARK

return M
