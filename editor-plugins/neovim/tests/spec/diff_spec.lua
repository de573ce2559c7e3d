local it = ...
local t = require("helpers")
local diff = require("acp_agent.diff")

local OLD = "a\nb\nc\nd\ne\nf\ng\n"
local NEW = "A\nb\nc\nd\nnew\ne\nf\n"

--- All ways to accept some of so many hunks.
local function choices(count)
  local all = {}
  for bits = 0, 2 ^ count - 1 do
    local accepted = {}
    for hunk = 1, count do
      accepted[hunk] = math.floor(bits / 2 ^ (hunk - 1)) % 2 == 1
    end
    all[#all + 1] = accepted
  end
  return all
end

it("accepting all hunks gives the new text, none the old one", function()
  local pairs_of_texts = {
    { OLD, NEW },
    { "", "x\n" },
    { "x\n", "" },
    { "a\nb", "a\nb\n" },
    { "a", "b" },
    { "a\n\n\nb\n", "\na\nb\n\n" },
    { "a\n", "a\nb" },
  }
  for _, pair in ipairs(pairs_of_texts) do
    local hunks = diff.hunks(pair[1], pair[2])
    local all, none = {}, {}
    for index in ipairs(hunks) do
      all[index], none[index] = true, false
    end
    t.same(diff.apply(pair[1], pair[2], hunks, all), pair[2])
    t.same(diff.apply(pair[1], pair[2], hunks, none), pair[1])
  end
end)

it("some hunks can be accepted without the others", function()
  local hunks = diff.hunks(OLD, NEW)
  t.same(#hunks, 3)
  t.same(diff.apply(OLD, NEW, hunks, { true, false, false }), "A\nb\nc\nd\ne\nf\ng\n")
  t.same(diff.apply(OLD, NEW, hunks, { false, true, false }), "a\nb\nc\nd\nnew\ne\nf\ng\n")
  t.same(diff.apply(OLD, NEW, hunks, { false, false, true }), "a\nb\nc\nd\ne\nf\n")
end)

it("rejected hunks are taken back from a text that changed elsewhere meanwhile", function()
  local hunks = diff.hunks(OLD, NEW)
  for _, accepted in ipairs(choices(#hunks)) do
    local wanted = diff.apply(OLD, NEW, hunks, accepted)
    t.same(diff.take_back(OLD, NEW, NEW, accepted), wanted)
    local current = "first\n" .. NEW:gsub("c\n", "C1\nC2\n") .. "last\n"
    local with_changes = "first\n" .. wanted:gsub("c\n", "C1\nC2\n") .. "last\n"
    t.same(diff.take_back(OLD, NEW, current, accepted), with_changes)
  end
end)

it("a hunk that was itself changed meanwhile is not taken back", function()
  local current = NEW:gsub("new\n", "newer\n")
  t.same(diff.take_back(OLD, NEW, current, { true, false, true }), nil)
  t.same(diff.take_back(OLD, NEW, current, { false, true, true }), (current:gsub("^A", "a")))
end)

it("a diff of a part of the file can be taken back from the whole", function()
  local whole = "head\n\nlocal x = 2\nreturn x\n\ntail\n"
  local text = diff.take_back("local x = 1\nreturn x\n", "local x = 2\nreturn x\n", whole, { false })
  t.same(text, "head\n\nlocal x = 1\nreturn x\n\ntail\n")
end)

it("random edits: any choice of hunks, taken back, equals the choice applied", function()
  math.randomseed(7)
  for _ = 1, 300 do
    local function text()
      local lines = {}
      for _ = 1, math.random(0, 8) do
        lines[#lines + 1] = ({ "a", "b", "c", "" })[math.random(4)]
      end
      return table.concat(lines, "\n") .. (math.random(2) == 1 and "\n" or "")
    end
    local old, new = text(), text()
    local hunks = diff.hunks(old, new)
    for _, accepted in ipairs(choices(math.min(#hunks, 3))) do
      t.same(diff.take_back(old, new, new, accepted), diff.apply(old, new, hunks, accepted))
    end
    local none = diff.take_back(old, new, new, {})
    t.same(none, old)
  end
end)

it("random edits are written out as diff -u has them, and no more lines than are wanted", function()
  math.randomseed(8)
  for round = 1, 300 do
    local old, new = {}, {}
    for index = 1, math.random(0, 20) do
      old[index] = "line " .. math.random(9)
      new[#new + 1] = math.random(6) > 1 and old[index] or nil
      new[#new + 1] = math.random(6) == 1 and "new" or nil
    end
    local ending = math.random(2) == 1 and "\n" or ""
    local before, after = table.concat(old, "\n") .. ending, table.concat(new, "\n") .. ending
    local wanted = {}
    for line in vim.diff(before, after, { ctxlen = 2, algorithm = "histogram" }):gmatch("[^\n]+") do
      wanted[#wanted + 1] = line:sub(1, 1) ~= "\\" and line or nil
    end
    local function written(most)
      local lines, more = diff.unified(before, after, most)
      return vim.tbl_map(function(line)
        return line.text
      end, lines), more
    end
    t.same(written(), wanted, "round " .. round)
    local some, more = written(3)
    t.same({ some, #some + more }, { vim.list_slice(wanted, 1, 3), #wanted })
  end
end)

it("a file of 100,000 lines with a change in every hundredth is compared in seconds", function()
  local old, new = {}, {}
  for index = 1, 100000 do
    old[index] = ("line %d of a long file, as they are"):format(index)
    new[index] = index % 100 == 0 and "changed " .. index or old[index]
  end
  local before, after = table.concat(old, "\n"), table.concat(new, "\n")
  local start = vim.uv.hrtime()
  t.same(#diff.hunks(before, after), 1000)
  t.same(#diff.unified(before, after, 300), 300)
  local seconds = (vim.uv.hrtime() - start) / 1e9
  assert(seconds < 4, seconds .. " s")
end)

it("lines are counted and written out", function()
  t.same({ diff.count(diff.hunks(OLD, NEW)) }, { 2, 2 })
  local kinds = vim.tbl_map(function(line)
    return line.kind
  end, diff.unified("a\nb\n", "a\nc\n"))
  t.same(kinds, { "header", "context", "delete", "add" })
end)
