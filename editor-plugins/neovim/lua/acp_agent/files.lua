--- The editor as the agent's file system: what is not saved is what is read, and what is written goes
--- through the buffers. Paths outside the session's folders are refused.

local uv = vim.uv
local utf8 = require("acp_agent.utf8")
local diff = require("acp_agent.diff")
local paths = require("acp_agent.paths")
local problem = paths.problem

local M = {}

M.LIMIT = 10 * 1024 * 1024 -- bytes of a file that is read or written

--- The loaded buffer of a file, if it has one.
---@param path string absolute, symlinks followed
---@return integer?
function M.buffer(path)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local name = vim.api.nvim_buf_get_name(buf)
      local alike = name ~= "" and vim.fs.basename(name) == vim.fs.basename(path)
      if name == path or (alike and paths.real(name) == path) then
        return buf
      end
    end
  end
  return nil
end

--- The text of a buffer, its lines ended by LF, without the byte order mark that it may be saved with.
---@param buf integer
---@return string
local function lines_of(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  if #lines == 1 and lines[1] == "" then -- no line at all, or an empty one
    local bytes = vim.api.nvim_buf_call(buf, vim.fn.wordcount).bytes
    return bytes == 0 and "" or "\n"
  end
  local ended = vim.bo[buf].endofline or (vim.bo[buf].fixendofline and not vim.bo[buf].binary)
  return table.concat(lines, "\n") .. (ended and "\n" or "")
end

--- The text of a buffer, its lines ended by LF.
---@param buf integer
---@return string
function M.buffer_text(buf)
  return (vim.bo[buf].bomb and utf8.MARK or "") .. lines_of(buf)
end

---@param path string
---@return string? text
---@return acp_agent.FileProblem? problem
local function read_disk(path)
  local stat = uv.fs_stat(path)
  if not stat then
    return nil, problem("missing", "no such file: " .. path)
  elseif stat.type ~= "file" then
    return nil, problem("refused", ("%s is no file but a %s"):format(path, stat.type))
  elseif stat.size > M.LIMIT then
    local text = "%s has %d bytes, more than may be read at once"
    return nil, problem("refused", text:format(path, stat.size))
  end
  local file, reason = uv.fs_open(path, "r", 0)
  if not file then
    return nil, problem("refused", "cannot read: " .. tostring(reason))
  end
  local text, why = uv.fs_read(file, stat.size, 0)
  uv.fs_close(file)
  if not text then
    return nil, problem("refused", "cannot read: " .. tostring(why))
  end
  return text
end

--- Loads a buffer again whose file changed on disk, unless it has changes of its own.
---@param buf integer
local function catch_up(buf)
  if not vim.bo[buf].modified then
    local before = vim.bo[buf].autoread
    vim.bo[buf].autoread = true
    pcall(vim.cmd, "silent! checktime " .. buf)
    if vim.api.nvim_buf_is_valid(buf) then
      vim.bo[buf].autoread = before
    end
  end
end

--- Loads the buffers again whose files changed on disk, where 'autoread' is on: Neovim itself would look
--- when it gets the focus, which it has all the time.
---@param roots string[] the folders of the session
function M.catch_up(roots)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" then
      local wanted = vim.bo[buf].autoread -- nil where the buffer has none of its own
      local name = vim.api.nvim_buf_get_name(buf)
      local stat = (wanted or wanted == nil and vim.go.autoread) and uv.fs_stat(name)
      if stat and stat.type == "file" and paths.resolve(name, roots) then
        catch_up(buf)
      end
    end
  end
end

--- The text of a file as the user sees it.
---@param path string as `resolve` gave it
---@return string? text
---@return acp_agent.FileProblem? problem
function M.read(path)
  local buf = M.buffer(path)
  local text, why
  local encoding = buf and vim.bo[buf].fileencoding or ""
  local converted = encoding ~= "" and encoding ~= "utf-8"
  if buf and (vim.bo[buf].modified or converted or not uv.fs_stat(path)) then
    text = M.buffer_text(buf)
  else
    text, why = read_disk(path)
  end
  if text and utf8.first_invalid(text) then
    return nil, problem("refused", path .. " is not UTF-8 text")
  end
  return text, why
end

--- What changes from here on is undone by itself (|undo-break|).
---@param buf integer
local function break_undo(buf)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("let &l:undolevels = &l:undolevels")
  end)
end

--- Puts text into a buffer, changing only what differs, so that marks and cursors stay.
---@param buf integer
---@param text string
function M.set_buffer_text(buf, text)
  local mark
  mark, text = utf8.split_mark(text)
  local ended = text == "" or text:sub(-1) == "\n"
  local current = lines_of(buf)
  if vim.bo[buf].fileformat == "dos" then
    text = text:gsub("\r\n", "\n")
  end
  local wanted = ended and text or (text .. "\n")
  local base = (current == "" or current:sub(-1) == "\n") and current or (current .. "\n")
  local lines = diff.lines(wanted)
  local hunks = diff.hunks(base, wanted)
  local modifiable = vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  break_undo(buf)
  for index = #hunks, 1, -1 do
    local hunk = hunks[index]
    local first = hunk.old_count == 0 and hunk.old_first or hunk.old_first - 1
    local new = vim.tbl_map(function(line)
      return (line:gsub("\n$", ""))
    end, vim.list_slice(lines, hunk.new_first, hunk.new_first + hunk.new_count - 1))
    if base == "" then -- the one empty line of an empty buffer
      vim.api.nvim_buf_set_lines(buf, 0, -1, false, new)
    else
      vim.api.nvim_buf_set_lines(buf, first, first + hunk.old_count, false, new)
    end
  end
  break_undo(buf)
  vim.bo[buf].bomb = vim.bo[buf].bomb or mark ~= ""
  vim.bo[buf].endofline = ended
  if not ended then
    vim.bo[buf].fixendofline = false
  end
  vim.bo[buf].modifiable = modifiable
end

--- Replaces a file on disk as a whole or not at all; its mode is kept.
---@param path string
---@param text string
---@return acp_agent.FileProblem?
local function write_disk(path, text)
  local stat = uv.fs_stat(path)
  if stat and stat.type ~= "file" then
    return problem("refused", ("%s is no file but a %s"):format(path, stat.type))
  end
  if stat and not uv.fs_access(path, "W") then
    return problem("refused", path .. " may not be written")
  end
  local folder = vim.fs.dirname(path)
  if not pcall(vim.fn.mkdir, folder, "p") then
    return problem("refused", "cannot create the folder: " .. folder)
  end
  local temporary = ("%s/.%s.%d~"):format(folder, vim.fs.basename(path):sub(1, 200), uv.hrtime())
  local mode = stat and bit.band(stat.mode, 511) or 420
  local file, why = uv.fs_open(temporary, "wx", mode)
  if not file then
    return problem("refused", "cannot write: " .. tostring(why))
  end
  local written, reason = uv.fs_write(file, text, 0)
  uv.fs_fchmod(file, mode)
  uv.fs_close(file)
  if written == #text then
    local renamed
    renamed, reason = uv.fs_rename(temporary, path)
    if renamed then
      return nil
    end
  end
  uv.fs_unlink(temporary)
  return problem("refused", "cannot write: " .. tostring(reason or "the disk is full"))
end

---@param buf integer
---@return string? why it was not saved
local function save(buf)
  local ok, why = pcall(vim.api.nvim_buf_call, buf, function()
    vim.fn.mkdir(vim.fs.dirname(vim.api.nvim_buf_get_name(buf)), "p")
    vim.cmd("silent keepalt write!")
  end)
  return not ok and (tostring(why):gsub("^.-(E%d+:)", "%1")) or nil
end

--- Writes a file, through its buffer where it has one.
---@param path string as `resolve` gave it
---@param text string
---@param options? { save?: boolean, seen?: string }
---  save: false leaves the buffer unsaved. seen: the text that the writer last saw or wrote; unsaved
---  changes that it has not seen are not overwritten
---@return acp_agent.FileProblem? problem nil: it is written
function M.write(path, text, options)
  options = options or {}
  if #text > M.LIMIT then
    return problem("refused", ("%d bytes are more than may be written at once"):format(#text))
  end
  local buf = M.buffer(path)
  if not buf then
    return write_disk(path, text)
  end
  if vim.bo[buf].modified then
    local current = M.buffer_text(buf)
    if current ~= options.seen and current ~= text then
      return problem(
        "refused",
        path .. " has changes in the editor that were made since it was read; read it again"
      )
    end
  else
    catch_up(buf)
  end
  if vim.bo[buf].readonly then
    return problem("refused", path .. " is read-only in the editor")
  end
  M.set_buffer_text(buf, text)
  if options.save ~= false then
    local why = save(buf)
    if why then
      local said = "%s is changed in the editor but could not be saved: %s"
      return problem("refused", said:format(path, why))
    end
  end
  return nil
end

return M
