--- Hunks between two texts: found, counted, written out, applied one by one, taken back. Pure.

local compare = vim.text and vim.text.diff or vim.diff ---@diagnostic disable-line: deprecated

---@class acp_agent.Hunk
---@field old_first integer the first line in the old text, from 1; the line before it where count is 0
---@field old_count integer
---@field new_first integer
---@field new_count integer

local M = {
  LARGE = 512 * 1024, -- bytes from which speed counts more than the nicest hunks
}

---@param old string
---@param new string
---@param options table of |vim.diff()|
---@return any
local function diff(old, new, options)
  -- What "histogram" takes grows with the lines times the hunks.
  options.algorithm = #old + #new < M.LARGE and "histogram" or "myers"
  return compare(old, new, options)
end

--- The lines of a text, each with its end.
---@param text string
---@return string[]
function M.lines(text)
  local lines = {}
  for line in text:gmatch("[^\n]*\n?") do
    if line ~= "" then
      lines[#lines + 1] = line
    end
  end
  return lines
end

---@param old string
---@param new string
---@return acp_agent.Hunk[] in the order of the lines
function M.hunks(old, new)
  if old == new then
    return {}
  end
  local found = diff(old, new, { result_type = "indices" })
  return vim.tbl_map(function(one)
    return { old_first = one[1], old_count = one[2], new_first = one[3], new_count = one[4] }
  end, found)
end

--- Where lines start that a hunk replaces: with a count of 0 it stands behind `first`.
---@param first integer
---@param count integer
---@return integer
local function start_of(first, count)
  return count == 0 and first + 1 or first
end

--- The old text with those hunks applied that are accepted.
---@param old string
---@param new string
---@param hunks acp_agent.Hunk[] as `hunks` gave them
---@param accepted table<integer, boolean> by the hunk's place in the list
---@return string
function M.apply(old, new, hunks, accepted)
  local from, to, out, at = M.lines(old), M.lines(new), {}, 1
  for index, hunk in ipairs(hunks) do
    local start = start_of(hunk.old_first, hunk.old_count)
    vim.list_extend(out, from, at, start - 1)
    if accepted[index] then
      local first = start_of(hunk.new_first, hunk.new_count)
      vim.list_extend(out, to, first, first + hunk.new_count - 1)
    else
      vim.list_extend(out, from, start, start + hunk.old_count - 1)
    end
    at = start + hunk.old_count
  end
  vim.list_extend(out, from, at)
  return table.concat(out)
end

--- A text that came from the new one, with those hunks taken back that are not accepted.
---
--- Lines that changed elsewhere since stay as they are.
---@param old string
---@param new string
---@param current string
---@param accepted table<integer, boolean>
---@return string? text nil where a hunk to take back was itself changed since
function M.take_back(old, new, current, accepted)
  local hunks = M.hunks(old, new)
  if current == new then
    return M.apply(old, new, hunks, accepted)
  end
  local since = M.hunks(new, current)
  local from, text, shift = M.lines(old), M.lines(current), {}
  for index = #hunks, 1, -1 do
    local hunk = hunks[index]
    if not accepted[index] then
      local first = start_of(hunk.new_first, hunk.new_count)
      local last, offset = first + hunk.new_count - 1, 0
      for _, change in ipairs(since) do
        local start = start_of(change.old_first, change.old_count)
        local stop = start + change.old_count - 1
        local more = change.new_count - change.old_count
        -- What was put in where lines were deleted stands behind them when they come back.
        local before = start < first or (start == first and hunk.new_count > 0)
        if change.old_count == 0 and before or change.old_count > 0 and stop < first then
          offset = offset + more
        elseif start <= last then
          return nil
        end
      end
      shift[#shift + 1] = { first + offset, hunk.new_count, hunk }
    end
  end
  for _, one in ipairs(shift) do -- from the last to the first, so that places stay true
    local first, count, hunk = one[1], one[2], one[3]
    local start = start_of(hunk.old_first, hunk.old_count)
    local result = vim.list_slice(text, 1, first - 1)
    vim.list_extend(result, from, start, start + hunk.old_count - 1)
    vim.list_extend(result, text, first + count)
    text = result
  end
  return table.concat(text)
end

--- How many lines come and go.
---@param hunks acp_agent.Hunk[]
---@return integer added
---@return integer removed
function M.count(hunks)
  local added, removed = 0, 0
  for _, hunk in ipairs(hunks) do
    added, removed = added + hunk.new_count, removed + hunk.old_count
  end
  return added, removed
end

---@class acp_agent.DiffLine
---@field kind "header"|"context"|"add"|"delete"
---@field text string without its end

--- Hunks that are near enough to share their surroundings stand together.
---@param hunks acp_agent.Hunk[]
---@param around integer lines
---@return acp_agent.Hunk[][]
local function grouped(hunks, around)
  local groups, last_stop = {}, nil
  for _, hunk in ipairs(hunks) do
    local start = start_of(hunk.old_first, hunk.old_count)
    if last_stop and start - last_stop <= 2 * around then
      table.insert(groups[#groups], hunk)
    else
      groups[#groups + 1] = { hunk }
    end
    last_stop = start + hunk.old_count
  end
  return groups
end

---@param start integer
---@param count integer
---@return string
local function range(start, count)
  return count == 1 and ("%d"):format(start) or ("%d,%d"):format(count == 0 and start - 1 or start, count)
end

--- The hunks written out with some lines around them, as `diff -u` has them.
---
--- (`vim.diff` writes them out as well, and takes seconds for a file that is all new.)
---@param old string
---@param new string
---@param most? integer lines; all of them by default
---@return acp_agent.DiffLine[]
---@return integer more how many lines are left out
function M.unified(old, new, most)
  local around, from, to = 2, M.lines(old), M.lines(new)
  local out, more = {}, 0
  local function add(kind, text)
    if #out < (most or math.huge) then
      out[#out + 1] = { kind = kind, text = text }
    else
      more = more + 1
    end
  end
  local function add_lines(kind, mark, lines, first, last)
    for index = first, last do
      add(kind, mark .. lines[index])
    end
  end
  for _, group in ipairs(grouped(M.hunks(old, new), around)) do
    local first, last = group[1], group[#group]
    local lead = math.min(around, start_of(first.old_first, first.old_count) - 1)
    local at = start_of(first.old_first, first.old_count) - lead
    local stop = math.min(start_of(last.old_first, last.old_count) + last.old_count - 1 + around, #from)
    local added, removed = M.count(group)
    local new_at = start_of(first.new_first, first.new_count) - lead
    local kept = stop - at + 1
    add("header", ("@@ -%s +%s @@"):format(range(at, kept), range(new_at, kept + added - removed)))
    for _, hunk in ipairs(group) do
      local start = start_of(hunk.old_first, hunk.old_count)
      add_lines("context", " ", from, at, start - 1)
      add_lines("delete", "-", from, start, start + hunk.old_count - 1)
      local new_start = start_of(hunk.new_first, hunk.new_count)
      add_lines("add", "+", to, new_start, new_start + hunk.new_count - 1)
      at = start + hunk.old_count
    end
    add_lines("context", " ", from, at, stop)
  end
  for _, line in ipairs(out) do
    line.text = line.text:gsub("\n$", "")
  end
  return out, more
end

return M
