--- What a review decided, carried out: when the agent writes, or after it wrote.
---
--- The protocol's answer to a permission is yes or no. Where only some hunks are accepted the answer is
--- yes, the others are left out of what the agent writes through the editor, or taken back from a file
--- that it wrote by itself, and the agent is told.

local config = require("acp_agent.config")
local diff = require("acp_agent.diff")
local files = require("acp_agent.files")
local paths = require("acp_agent.paths")
local utf8 = require("acp_agent.utf8")

---@class acp_agent.Edit
---@field call string
---@field old string
---@field new string
---@field accepted? table<integer, boolean> by hunk; nil: all
---@field applied boolean the rejected hunks were left out when the agent wrote
---@field refused? boolean the agent wanted to write and was not let

local M = {}

--- A text without its byte order mark, which a diff may leave out.
---@param text string
---@return string
local function plain(text)
  return (select(2, utf8.split_mark(text)))
end

--- An ask was answered with yes: its diffs are what the user agreed to.
---@param ask acp_agent.Ask
---@param accepted? table<integer, table<integer, boolean>> by file and hunk; nil: all
function M.allowed(ask, accepted)
  accepted = accepted or ask.accepted
  for index, file in ipairs(ask.diffs) do
    local path = paths.resolve(file.path, ask.session.roots)
    if path then
      local edit = { call = ask.call, old = plain(file.old), new = plain(file.new), applied = false }
      local chosen = accepted and accepted[index]
      for hunk = 1, chosen and #file.hunks or 0 do
        if not chosen[hunk] then
          edit.accepted = chosen
        end
      end
      ask.session.edits[path] = edit
    end
  end
end

--- What is to be written where the agent wants to write `content`.
---@param session acp_agent.Session
---@param path string resolved
---@param content string
---@return string? text nil: it must not be written
---@return string? reason
function M.wanted(session, path, content)
  local edit = session.edits[path]
  if not edit then
    return content
  end
  local mark, wanted = utf8.split_mark(content)
  if wanted == edit.new and not edit.applied then
    local current = plain(files.read(path) or edit.old)
    if current ~= edit.old and current ~= edit.new then
      return nil, path .. " changed since its diff was shown to the user; read it again"
    end
  end
  if not edit.accepted then
    return content
  end
  local text = diff.take_back(edit.old, edit.new, wanted, edit.accepted)
  if not text then
    return nil, "the user rejected parts of this edit, which cannot be located in " .. path
  end
  edit.applied = true
  return mark .. text
end

--- What the agent wanted to write was not written.
---@param session acp_agent.Session
---@param path string resolved
function M.refused(session, path)
  local edit = session.edits[path]
  if edit then
    edit.refused, edit.applied = true, false
  end
end

--- A call is over: hunks that were rejected and written all the same are taken back.
---@param session acp_agent.Session
---@param call string?
function M.call_ended(session, call)
  for path, edit in pairs(session.edits) do
    if edit.call == call then
      session.edits[path] = nil
      if edit.accepted and not edit.applied and not edit.refused then
        local problem = M.take_back(path, edit.old, edit.new, edit.accepted)
        if problem then
          session:notice("the rejected hunks are still in the file: " .. problem, "warning")
        end
      end
    end
  end
end

--- Takes rejected hunks back out of a file.
---@param path string resolved
---@param old string
---@param new string
---@param accepted table<integer, boolean>
---@return string? problem
function M.take_back(path, old, new, accepted)
  local seen, why = files.read(path)
  if not seen then
    return why.message
  end
  local mark, current = utf8.split_mark(seen)
  old, new = plain(old), plain(new)
  if current == old then
    return nil -- it was never written
  end
  local text = diff.take_back(old, new, current, accepted)
  if not text then
    return path .. " changed since the diff was made"
  elseif text == current then
    return nil
  end
  local problem = files.write(path, mark .. text, { save = config.current.files.save, seen = seen })
  return problem and problem.message
end

--- Tells the agent what was rejected: at once where it can be steered, else with the next prompt.
---@param session acp_agent.Session
---@param files_of_it acp_agent.FileDiff[]
---@param accepted table<integer, table<integer, boolean>>
function M.tell(session, files_of_it, accepted)
  if not config.current.review.tell_agent then
    return
  end
  local parts = {}
  for index, file in ipairs(files_of_it) do
    local rejected = {}
    for hunk = 1, #file.hunks do
      rejected[hunk] = accepted[index] and accepted[index][hunk] == true
    end
    local kept = diff.apply(file.old, file.new, file.hunks, rejected)
    if kept ~= file.new then
      local lines = vim.tbl_map(function(line)
        return line.text
      end, diff.unified(kept, file.new))
      local said = "In %s I rejected these hunks of your edit; they are not in the file:\n\n%s"
      parts[#parts + 1] = said:format(file.path, table.concat(lines, "\n"))
    end
  end
  if #parts == 0 then
    return
  end
  local block = { type = "text", text = table.concat(parts, "\n\n") }
  if session.turn and session.client:steers() then
    local params = { sessionId = session.id, prompt = { block } }
    session.client:request("_session/steering", params, function(error)
      if error then
        table.insert(session.notes, block)
      end
    end)
  else
    table.insert(session.notes, block)
  end
end

return M
