--- What goes with a prompt: files, selections, and files that the prompt names with `@`.

local files = require("acp_agent.files")
local paths = require("acp_agent.paths")
local json = require("acp_agent.json")

---@class acp_agent.ContextItem
---@field path string absolute
---@field first? integer the first line of a selection, from 1
---@field last? integer
---@field text? string of a selection

local M = {}

--- How an item is called for the user.
---@param item acp_agent.ContextItem
---@param cwd string
---@return string
function M.label(item, cwd)
  local path = item.path
  if vim.startswith(path, cwd .. "/") then
    path = path:sub(#cwd + 2)
  end
  if item.first then
    path = ("%s:%d-%d"):format(path, item.first, item.last)
  end
  return path
end

--- A file as context.
---@param path string
---@return acp_agent.ContextItem? item
---@return string? problem
function M.file(path)
  if path == "" then
    return nil, "this buffer is not a file"
  end
  local absolute = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"), { expand_env = false })
  local stat = vim.uv.fs_stat(absolute)
  if not stat and not files.buffer(absolute) then
    return nil, "no such file: " .. path
  elseif stat and stat.type ~= "file" then
    return nil, path .. " is no file"
  end
  return { path = absolute }
end

--- Lines of a buffer as context.
---@param buf integer
---@param first integer from 1
---@param last integer
---@return acp_agent.ContextItem? item
---@return string? problem
function M.lines(buf, first, last)
  local name = vim.api.nvim_buf_get_name(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, first - 1, last, false)
  if name == "" then
    name = vim.fn.getcwd() .. "/untitled"
  end
  return { path = name, first = first, last = last, text = table.concat(lines, "\n") .. "\n" }
end

--- The files that a text names with `@`, below the session's folders.
---@param text string
---@param session acp_agent.Session
---@return acp_agent.ContextItem[]
function M.mentioned(text, session)
  local items, known = {}, {}
  for before, word in (" " .. text):gmatch("([%s(\"'])@([^%s]+)") do
    local _ = before
    while word ~= "" do
      local path = vim.fs.normalize(session.cwd .. "/" .. word, { expand_env = false })
      if word:sub(1, 1) == "/" then
        path = vim.fs.normalize(word, { expand_env = false })
      end
      local stat = vim.uv.fs_stat(path)
      if stat and stat.type == "file" and paths.resolve(path, session.roots) then
        if not known[path] then
          known[path] = true
          items[#items + 1] = { path = path }
        end
        break
      end
      if not word:match("[%.,;:!?)\"'%]]$") then
        break
      end
      word = word:sub(1, -2) -- the punctuation of the sentence
    end
  end
  return items
end

---@param path string
---@return string
local function mime_type(path)
  local kind = vim.filetype.match({ filename = path })
  return kind and kind ~= "text" and ("text/x-" .. kind) or "text/plain"
end

---@param text string
---@return string one that the text does not have
local function fence(text)
  local longest = 2
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  return ("`"):rep(longest + 1)
end

--- An item as the agent takes it: embedded where it can, else as a link or as text.
---@param item acp_agent.ContextItem
---@param session acp_agent.Session
---@return table ContentBlock
function M.block(item, session)
  local embeds = json.offers(session.client.capabilities, "promptCapabilities", "embeddedContext")
  local uri = vim.uri_from_fname(item.path)
  local name = M.label(item, session.cwd)
  local text = item.text
  if not text then
    local buf = files.buffer(vim.uv.fs_realpath(item.path) or item.path)
    if buf and vim.bo[buf].modified and not require("acp_agent.config").current.files.read then
      text = files.buffer_text(buf) -- the agent would find the file on disk
    end
  end
  if not text then
    return { type = "resource_link", uri = uri, name = name, mimeType = mime_type(item.path) }
  end
  if item.first then
    uri = ("%s#L%d-L%d"):format(uri, item.first, item.last)
  end
  if embeds then
    local resource = { uri = uri, text = text, mimeType = mime_type(item.path) }
    return { type = "resource", resource = resource }
  end
  local marks = fence(text)
  return { type = "text", text = ("%s:\n%s\n%s%s"):format(name, marks, text, marks) }
end

--- A prompt with what goes with it.
---@param text string
---@param session acp_agent.Session
---@return table[] ContentBlock
function M.blocks(text, session)
  local blocks = { { type = "text", text = text } }
  local given = {}
  for _, item in ipairs(session.context) do
    given[item.path] = true
    blocks[#blocks + 1] = M.block(item, session)
  end
  for _, item in ipairs(M.mentioned(text, session)) do
    if not given[item.path] then
      blocks[#blocks + 1] = M.block(item, session)
    end
  end
  return blocks
end

return M
