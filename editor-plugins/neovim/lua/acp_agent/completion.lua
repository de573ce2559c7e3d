--- Completion in the prompt: the agent's commands after "/", files after "@".

local inert = require("acp_agent.inert")
local json = require("acp_agent.json")

local M = { MOST = 100, FRESH = 10000 }

---@type table<string, { at: integer, files: string[] }>
local listed = {}

--- The files below a folder, those that git ignores left out where it is a repository.
---@param cwd string
---@return string[]
function M.files(cwd)
  local known = listed[cwd]
  if known and vim.uv.now() - known.at < M.FRESH then
    return known.files
  end
  local files = {}
  local ok, done = pcall(function()
    return vim.system({ "git", "ls-files", "-co", "--exclude-standard", "-z" }, { cwd = cwd }):wait(1500)
  end)
  if ok and done.code == 0 then
    for file in (done.stdout or ""):gmatch("[^%z]+") do
      files[#files + 1] = file
    end
  else
    for name, kind in vim.fs.dir(cwd, { depth = 6 }) do
      if kind == "file" and not name:match("^%.") and not name:match("/%.") then
        files[#files + 1] = name
      end
      if #files >= 5000 then
        break
      end
    end
  end
  listed[cwd] = { at = vim.uv.now(), files = files }
  return files
end

---@class acp_agent.Completion
---@field start integer the byte at which what is replaced starts, from 0
---@field items table[] complete-items

--- What can stand at the cursor.
---@param session acp_agent.Session
---@param line string
---@param col integer bytes before the cursor
---@param first_line boolean whether it is the prompt's first line
---@return acp_agent.Completion? nil where nothing is completed here
function M.at(session, line, col, first_line)
  local before = line:sub(1, col)
  local command = first_line and before:match("^/(%S*)$")
  if command then
    local items = {}
    for _, one in ipairs(session.commands) do
      local name = json.string(one, "name")
      if name and vim.startswith(name, command) and not name:find("[%s%c]") then
        local hint = json.string(json.table(one, "input"), "hint")
        items[#items + 1] = {
          word = "/" .. name .. (hint and " " or ""),
          abbr = "/" .. inert.line(name, 40),
          menu = inert.line(hint, 40),
          info = inert.line(json.string(one, "description"), 300),
          dup = 1,
        }
      end
    end
    return { start = 0, items = items }
  end
  local at, word = before:match("()@(%S*)$")
  if at and (at == 1 or before:sub(at - 1, at - 1):match("[%s(\"']")) then
    local files = M.files(session.cwd)
    local found = vim.list_slice(files, 1, M.MOST)
    if word ~= "" then
      found = vim.fn.matchfuzzy(files, word, { limit = M.MOST })
    end
    local items = {}
    for _, file in ipairs(found) do
      if not file:find("[%s%c]") then
        items[#items + 1] = { word = "@" .. file }
      end
    end
    return { start = at - 1, items = items }
  end
  return nil
end

--- 'omnifunc' of the prompt.
---@param findstart integer
---@return integer|table[]
function M.omnifunc(findstart, _)
  local chat = require("acp_agent.chat").of_buffer(vim.api.nvim_get_current_buf())
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  if findstart == 1 then
    M.found = chat and M.at(chat.session, vim.api.nvim_get_current_line(), col, row == 1)
    return M.found and M.found.start or -2
  end
  return M.found and M.found.items or {}
end

local OFFERING = "menuone,noinsert,noselect" -- else the first one would be put in unasked

--- Makes the lists of a buffer offer and put nothing in.
---@param buf integer
function M.prepare(buf)
  if vim.fn.has("nvim-0.11") == 1 then
    vim.bo[buf].completeopt = OFFERING
  end
end

--- Before Neovim 0.11 'completeopt' is of all buffers: it is lent as long as a list is shown.
local function borrow_completeopt()
  local before = vim.o.completeopt
  vim.o.completeopt = OFFERING
  vim.api.nvim_create_autocmd("CompleteDone", {
    once = true,
    callback = function()
      if vim.o.completeopt == OFFERING then
        vim.o.completeopt = before
      end
    end,
  })
end

--- Offers completions while the user types.
function M.while_typing()
  if vim.fn.pumvisible() == 1 then
    return
  end
  local chat = require("acp_agent.chat").of_buffer(vim.api.nvim_get_current_buf())
  if not chat then
    return
  end
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local found = M.at(chat.session, vim.api.nvim_get_current_line(), col, row == 1)
  if found and #found.items > 0 then
    if vim.fn.has("nvim-0.11") == 0 then
      borrow_completeopt()
    end
    vim.fn.complete(found.start + 1, found.items)
  end
end

return M
