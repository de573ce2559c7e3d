--- What brings a buffer's lines for an entry up to date, as few changes as there can be: what stays the
--- same keeps its folds, marks and cursors.

---@class acp_agent.Operation
---@field kind "text"|"line"|"lines"|"marks"
---@field row integer from 0
---@field col? integer text: bytes from the start of the row
---@field end_col? integer text: where what is replaced ends, in the same row
---@field count? integer lines: how many are replaced; marks: how many they are about
---@field lines? string[] text, line, lines: what comes instead
---@field marks? acp_agent.Mark[] marks: with rows from the start of the operation's row

---@class acp_agent.Mark
---@field row integer
---@field col? integer
---@field end_col? integer to the end of the row by default
---@field group? string a highlight group
---@field note? string what stands behind the row and is not in it
---@field whole? boolean to the end of the screen's line

---@class acp_agent.Change
---@field entry acp_agent.Entry
---@field places acp_agent.Places
---@field emit fun(operation: acp_agent.Operation)
---@field row integer that of the entry's first line

--- Lines first to old_last become lines first to new_last of `lines`; more or fewer than there were.
---@param change acp_agent.Change
---@param lines string[]
---@param first integer
---@param old_last integer
---@param new_last integer
local function replace_lines(change, lines, first, old_last, new_last)
  local shown = change.entry.shown
  local added = vim.list_slice(lines, first, new_last)
  local rest = vim.list_slice(shown, old_last + 1)
  for index = #shown, first, -1 do
    shown[index] = nil
  end
  vim.list_extend(shown, added)
  vim.list_extend(shown, rest)
  change.places:moved(change.entry.index)
  local count = old_last - first + 1
  change.emit({ kind = "lines", row = change.row + first - 1, count = count, lines = added })
end

--- One line becomes another, in place; where nothing is folded, what it grew by is added.
---@param change acp_agent.Change
---@param index integer
---@param after string
local function replace_line(change, index, after)
  local before = change.entry.shown[index]
  local row = change.row + index - 1
  change.entry.shown[index] = after
  if change.entry.folds or after:sub(1, #before) ~= before then
    change.emit({ kind = "line", row = row, lines = { after } })
  else
    local rest = after:sub(#before + 1)
    change.emit({ kind = "text", row = row, col = #before, end_col = #before, lines = { rest } })
  end
end

---@param change acp_agent.Change
local function flush_lines(change)
  local shown = change.entry.shown
  local lines, from = change.entry:render()
  local first = math.min(from or 1, #shown + 1)
  while first <= #shown and first <= #lines and shown[first] == lines[first] do
    first = first + 1
  end
  local old_last, new_last = #shown, #lines
  while old_last >= first and new_last >= first and shown[old_last] == lines[new_last] do
    old_last, new_last = old_last - 1, new_last - 1
  end
  while first <= old_last and first <= new_last do
    if shown[first] ~= lines[first] then
      replace_line(change, first, lines[first])
    end
    first = first + 1
  end
  if first <= old_last or first <= new_last then
    replace_lines(change, lines, first, old_last, new_last)
  end
end

--- Gives the operations for one entry; what was shown of it is what it has now, after each of them.
---@param entry acp_agent.Entry
---@param places acp_agent.Places
---@param emit fun(operation: acp_agent.Operation)
local function flush(entry, places, emit)
  local row = places:start(entry.index)
  flush_lines({ entry = entry, places = places, emit = emit, row = row })
  local marks, from = entry:marks()
  if marks then
    from = from or 0
    emit({ kind = "marks", row = row + from, count = #entry.shown - from, marks = marks })
  end
end

return flush
