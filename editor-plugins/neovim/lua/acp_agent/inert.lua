--- Text of others, made harmless to show.
---
--- Control characters are drawn (ESC is ␛), characters that reorder a line are named (<U+202E>), and
--- nothing of it is left for a statusline, a terminal or a command line to interpret.

local M = {}

local REORDERING = { -- the bidirectional controls of Unicode
  ["\226\128\170"] = "<U+202A>",
  ["\226\128\171"] = "<U+202B>",
  ["\226\128\172"] = "<U+202C>",
  ["\226\128\173"] = "<U+202D>",
  ["\226\128\174"] = "<U+202E>",
  ["\226\129\166"] = "<U+2066>",
  ["\226\129\167"] = "<U+2067>",
  ["\226\129\168"] = "<U+2068>",
  ["\226\129\169"] = "<U+2069>",
}

---@param character string a C0 control character or DEL
---@return string the picture that Unicode has for it
local function picture(character)
  local code = character:byte()
  return code == 127 and "\226\144\161" or ("\226\144" .. string.char(0x80 + code))
end

--- Text of several lines: line breaks and tabs stay.
---@param text string
---@return string
function M.text(text)
  if not text:find("[%z\1-\8\11-\31\127-\255]") then -- nearly all text, and it may be long
    return text
  end
  text = require("acp_agent.utf8").valid(text)
  if text:find("\r", 1, true) then
    text = text:gsub("\r\n", "\n")
  end
  if text:find("[%z\1-\8\11-\31\127]") then
    text = text:gsub("[%z\1-\8\11-\31\127]", picture)
  end
  if text:find("\194[\128-\159]") then
    text = text:gsub("\194([\128-\159])", function(second)
      return ("<U+%04X>"):format(second:byte())
    end)
  end
  if text:find("\226[\128\129][\166-\174]") then
    text = text:gsub("\226[\128\129][\166-\174]", REORDERING)
  end
  return text
end

--- Text for one line: breaks and tabs are spaces, and what is too long is cut.
---@param text string?
---@param limit? integer bytes at most; 300 by default
---@return string
function M.line(text, limit)
  text, limit = text or "", limit or 300
  if #text > limit then
    text = require("acp_agent.utf8").head(text, limit) .. "…"
  end
  return M.text((text:gsub("[\r\n\t]+", " ")))
end

--- Text for a statusline, a winbar or a tabline, which would expand `%`.
---@param text string?
---@param limit? integer
---@return string
function M.statusline(text, limit)
  return (M.line(text, limit):gsub("%%", "%%%%"))
end

return M
