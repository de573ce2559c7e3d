--- Paths that an agent names: where they lead, and whether that is in the workspace.

local uv = vim.uv
local utf8 = require("acp_agent.utf8")

local M = { LIMIT = 4096 } -- bytes of a path

---@class acp_agent.FileProblem
---@field kind "missing"|"outside"|"refused"
---@field message string

---@param kind string
---@param message string
---@return acp_agent.FileProblem
function M.problem(kind, message)
  return { kind = kind, message = message }
end

--- The path with every symlink followed, also those above something that does not exist yet.
---@param path string absolute
---@return string?
function M.real(path)
  local rest = {}
  local at = vim.fs.normalize(path, { expand_env = false })
  for _ = 1, 256 do
    local found = uv.fs_realpath(at)
    if found then
      for i = #rest, 1, -1 do
        found = (found == "/" and "" or found) .. "/" .. rest[i]
      end
      return found
    end
    if uv.fs_lstat(at) then
      return nil -- a symlink that leads nowhere, or in a circle
    end
    local parent = vim.fs.dirname(at)
    if parent == at then
      return nil
    end
    rest[#rest + 1] = vim.fs.basename(at)
    at = parent
  end
  return nil
end

--- Finds a file of the workspace.
---@param path any as the agent named it
---@param roots string[] the session's folders
---@return string? path absolute, symlinks followed
---@return acp_agent.FileProblem? problem
function M.resolve(path, roots)
  if type(path) ~= "string" or path:sub(1, 1) ~= "/" then
    return nil, M.problem("refused", "the path must be absolute: " .. tostring(path))
  elseif #path > M.LIMIT then
    return nil, M.problem("refused", ("the path is too long (%d bytes)"):format(#path))
  end
  if path:find("%z") or utf8.first_invalid(path) then
    return nil, M.problem("refused", "the path contains an invalid character")
  end
  for part in path:gmatch("[^/]+") do
    if part == ".." then
      return nil, M.problem("outside", "the path must not contain ..: " .. path)
    end
  end
  local found = M.real(path)
  for _, root in ipairs(roots) do
    local base = uv.fs_realpath(root)
    local below = base and (base == "/" and "/" or base .. "/")
    if found and below and (found == base or vim.startswith(found, below)) then
      return found
    end
  end
  return nil, M.problem("outside", "the path is outside the workspace: " .. path)
end

return M
