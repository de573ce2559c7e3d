local it = ...
local t = require("helpers")
local files = require("acp_agent.files")
local paths = require("acp_agent.paths")

local function buffer(path)
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  return buf
end

it("paths outside the workspace are refused, however they lead out", function()
  local folder, outside = t.folder(), t.folder()
  t.write(outside .. "/secret", "s")
  vim.uv.fs_symlink(outside, folder .. "/link")
  vim.uv.fs_symlink(outside .. "/nothing", folder .. "/dangling")
  t.write(folder .. "/in", "x")
  t.same(paths.resolve(folder .. "/in", { folder }), folder .. "/in")
  t.same(paths.resolve(folder .. "/new/deep/file", { folder }), folder .. "/new/deep/file")
  for _, path in ipairs({
    outside .. "/secret",
    folder .. "/link/secret",
    folder .. "/../x",
    folder .. "/a/../../x",
    "in",
    "",
    3,
    "/etc/passwd",
    folder .. "-beside",
    folder .. "/dangling",
    folder .. "/a\0b",
    "~/x",
    "term://touch x",
  }) do
    local found, problem = paths.resolve(path, { folder })
    t.same(found, nil, tostring(path))
    assert(problem.message)
  end
end)

it("what is not saved is what is read, and the disk is where nothing is changed", function()
  local folder = t.folder()
  local path = folder .. "/a.txt"
  t.write(path, "disk\n")
  local buf = buffer(path)
  t.write(path, "changed by a command\n")
  t.same(files.read(path), "changed by a command\n")
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "typed", "not saved" })
  t.same(files.read(path), "typed\nnot saved\n")
  t.same(select(2, files.read(folder .. "/none")).kind, "missing")
  t.same(select(2, files.read(folder)).kind, "refused")
end)

it("what is written changes only what differs, and is saved", function()
  local folder = t.folder()
  local path = folder .. "/a.txt"
  t.write(path, "one\ntwo\nthree\n")
  local buf = buffer(path)
  local mark = vim.api.nvim_buf_set_extmark(buf, vim.api.nvim_create_namespace("x"), 2, 0, {})
  t.same(files.write(path, "zero\none\nTWO\nthree\n"), nil)
  t.same(t.read(path), "zero\none\nTWO\nthree\n")
  t.same(vim.api.nvim_buf_get_extmark_by_id(buf, vim.api.nvim_create_namespace("x"), mark, {}), { 3, 0 })
  t.same(vim.bo[buf].modified, false)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("silent undo")
  end)
  t.same(files.buffer_text(buf), "one\ntwo\nthree\n")
end)

it("any text comes back as it was written, through a buffer and without one", function()
  local folder = t.folder()
  for _, before in ipairs({ "", "a\n", "a\nb", "a\r\nb\r\n", "\n" }) do
    for _, after in ipairs({ "", "x", "x\n", "x\ny", "a\nb\n", "\n\n", "é\0z\n", "a\n" }) do
      local path = folder .. "/f"
      t.write(path, before)
      local buf = buffer(path)
      t.same(files.write(path, after), nil)
      local wanted = after
      if vim.bo[buf].fileformat == "dos" then
        wanted = after:gsub("\n", "\r\n")
      end
      local what = ("%q over %q"):format(after, before)
      t.same(t.read(path), wanted, what)
      t.same(files.buffer_text(buf), after, what .. " in the buffer")
      vim.api.nvim_buf_delete(buf, { force = true })
      t.write(path, before)
      t.same(files.write(path, after), nil)
      t.same(t.read(path), after, what .. " on disk")
    end
  end
end)

it("a byte order mark stays the only one, whoever writes it, and is no part of a buffer", function()
  local path, mark = t.folder() .. "/f", "\239\187\191"
  for _, eol in ipairs({ "\n", "\r\n" }) do
    local before = table.concat({ mark .. "one", "two", "" }, eol)
    for _, after in ipairs({ mark .. "ONE\ntwo\n", "ONE\ntwo\n" }) do
      t.write(path, before)
      local buf = buffer(path)
      t.same(files.read(path), before)
      t.same(files.write(path, after, {}), nil)
      t.same(t.read(path), (before:gsub("one", "ONE")))
      t.same(vim.api.nvim_buf_get_lines(buf, 0, -1, false), { "ONE", "two" })
      vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "typed" })
      t.same(files.read(path), mark .. "typed\ntwo\n")
      vim.api.nvim_buf_delete(buf, { force = true })
    end
  end
  local new = vim.fn.bufadd(t.folder() .. "/new")
  vim.fn.bufload(new)
  t.same(files.write(vim.api.nvim_buf_get_name(new), mark .. "a\n"), nil)
  t.same(t.read(vim.api.nvim_buf_get_name(new)), mark .. "a\n")
end)

it("unsaved changes that the writer has not seen are not overwritten", function()
  local folder = t.folder()
  local path = folder .. "/a.txt"
  t.write(path, "disk\n")
  local buf = buffer(path)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "typed" })
  t.has(files.write(path, "agent\n").message, "read it again")
  t.has(files.write(path, "agent\n", { seen = "disk\n" }).message, "read it again")
  t.same(files.buffer_text(buf), "typed\n")
  t.same(files.write(path, "agent\n", { seen = "typed\n" }), nil)
  t.same(t.read(path), "agent\n")
end)

it("a buffer that is not loaded is not loaded for a write, and the mode of a file is kept", function()
  local folder = t.folder()
  local path = folder .. "/deep/run.sh"
  t.same(files.write(path, "#!/bin/sh\n"), nil)
  vim.uv.fs_chmod(path, 493)
  t.same(files.write(path, "#!/bin/sh\ntrue\n"), nil)
  t.same(bit.band(vim.uv.fs_stat(path).mode, 511), 493)
  t.same(files.buffer(path), nil)
  t.same(vim.fn.readdir(folder .. "/deep"), { "run.sh" })
end)

it("a file that is no text is not read, and a fifo neither", function()
  local folder = t.folder()
  t.write(folder .. "/binary", "a\255\254")
  t.has(select(2, files.read(folder .. "/binary")).message, "not UTF-8")
  vim.fn.system({ "mkfifo", folder .. "/fifo" })
  t.has(select(2, files.read(folder .. "/fifo")).message, "fifo")
  t.has(files.write(folder .. "/fifo", "x").message, "fifo")
end)

it("one undo takes back one write of the agent's, and nothing that the user typed", function()
  local path = t.folder() .. "/a.txt"
  t.write(path, "1\n2\n3\n4\n5\n")
  vim.cmd.edit(path)
  local function typed(keys)
    vim.api.nvim_feedkeys(vim.keycode(keys), "x", false)
  end
  local function undone()
    vim.cmd("silent undo")
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), " ")
  end
  typed("Gotyped<Esc>")
  t.same(files.write(path, "ONE\n2\n3\n4\nFIVE\ntyped\n", { seen = "1\n2\n3\n4\n5\ntyped\n" }), nil)
  t.same(files.write(path, "ONE\n2\n3\n4\nFIVE\ntyped\nmore\n"), nil)
  typed("Goagain<Esc>")
  t.same(undone(), "ONE 2 3 4 FIVE typed more")
  t.same(undone(), "ONE 2 3 4 FIVE typed")
  t.same(undone(), "1 2 3 4 5 typed")
  t.same(undone(), "1 2 3 4 5")
  t.same(
    vim.bo.undolevels,
    vim.api.nvim_get_option_value("undolevels", { buf = vim.api.nvim_create_buf(true, false) })
  )
  vim.cmd("bwipeout!")
end)
