-- What an agent has the editor do: files and commands.
local it = ...
local t = require("helpers")
local config = require("acp_agent.config")

it("the editor's files: unsaved text is read and written, the rest of the disk is closed", function()
  local session, folder = t.session()
  local path = folder .. "/a.txt"
  t.write(path, "disk\n")
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "un", "saved" })
  t.turn(session, ('call fs/read_text_file {"path": "%s"}'):format(path))
  t.has(t.text(session), [[{"content": "un\nsaved\n"}]])
  t.turn(session, ('call fs/read_text_file {"path": "%s", "line": 2, "limit": 1}'):format(path))
  t.has(t.text(session), [[{"content": "saved\n"}]])
  t.turn(session, ('call fs/write_text_file {"path": "%s", "content": "by the agent\\n"}'):format(path))
  t.same(t.read(path), "by the agent\n")
  t.turn(session, 'call fs/read_text_file {"path": "/etc/hostname"}')
  t.has(t.text(session), "outside the workspace")
  t.turn(session, 'call fs/write_text_file {"path": "/tmp/acp-outside", "content": "x"}')
  t.same(t.read("/tmp/acp-outside"), nil)
  t.turn(session, ('call fs/read_text_file {"path": "%s/none"}'):format(folder))
  t.has(t.text(session), '"code": -32002')
  t.turn(session, ('call fs/write_text_file {"path": "%s"}'):format(path))
  t.has(t.text(session), "content must be a string")
end)

it("what the user typed since the agent read is not lost", function()
  local session, folder = t.session()
  local path = folder .. "/a.txt"
  t.write(path, "old\n")
  local buf = vim.fn.bufadd(path)
  vim.fn.bufload(buf)
  t.say(session, "edit " .. path)
  local ask = t.question(session)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, { "old", "typed meanwhile" })
  ask:choose_kind("allow_once")
  t.over(session)
  t.has(t.text(session), "cannot write: " .. path .. " changed since its diff was shown")
  t.same(require("acp_agent.files").buffer_text(buf), "old\ntyped meanwhile\n")
end)

it("what is not offered is not done", function()
  local session, folder = t.session(nil, { terminals = false, files = { read = false, write = false } })
  t.write(folder .. "/a", "x")
  for _, call in ipairs({
    ('call fs/read_text_file {"path": "%s/a"}'):format(folder),
    ('call fs/write_text_file {"path": "%s/a", "content": ""}'):format(folder),
    'call terminal/create {"command": "true"}',
    "call unheard/of {}",
  }) do
    t.turn(session, call)
  end
  t.same(select(2, t.text(session):gsub('"code": %-32601', "")), 4)
  t.turn(session, 'call fs/read_text_file {"sessionId": "another", "path": "/a"}')
  t.has(t.text(session), "session not found: another")
  config.set()
end)

it(
  "what a command changed on disk is seen in the buffers, but for what is not saved or not wanted",
  function()
    local session, folder = t.session()
    local function edited(name)
      t.write(folder .. "/" .. name, "before\n")
      local buf = vim.fn.bufadd(folder .. "/" .. name)
      vim.fn.bufload(buf)
      vim.uv.fs_utime(folder .. "/" .. name, 1, 1)
      vim.api.nvim_buf_call(buf, function()
        vim.cmd("edit!")
      end)
      return buf
    end
    local plain, unsaved, kept = edited("plain"), edited("unsaved"), edited("kept")
    vim.api.nvim_buf_set_lines(unsaved, 0, -1, false, { "typed" })
    vim.bo[kept].autoread = false
    t.turn(session, ("run cd %s; for name in *; do echo after > $name; done"):format(folder))
    t.wait(function()
      return vim.fn.getbufline(plain, 1, "$")[1] == "after"
    end, "the new text")
    t.same(vim.fn.getbufline(unsaved, 1, "$"), { "typed" })
    t.same(vim.fn.getbufline(kept, 1, "$"), { "before" })
    t.same(vim.bo[plain].autoread, nil)
    for _, buf in ipairs({ plain, unsaved, kept }) do
      vim.api.nvim_buf_delete(buf, { force = true })
    end
  end
)

it("a command runs in the editor, its output is live, bounded and told", function()
  local session = t.session()
  t.turn(session, [[run printf 'one\n\033[31mtwo'; exit 3]])
  local text = t.text(session)
  t.has(text, "✓ Run it")
  t.has(text, "      two")
  t.has(text, "[exit code 3]")
  t.has(
    text,
    [[{"exit": {"exitCode": 3, "signal": null}, "output": {"exitStatus": {"exitCode": 3, "signal": null}]]
  )
  t.turn(session, "run head -c 100000 /dev/zero | tr '\\0' é; kill -9 $$")
  t.has(t.text(session), [["signal": "SIGKILL"]])
  t.has(t.text(session), [["truncated": true]])
end)

it("what a command left running is ended with it, and at the end of the agent", function()
  local session, folder = t.session()
  local pids = folder .. "/pids"
  t.turn(session, ("run sleep 300 & echo $! > %s; exit 0"):format(pids))
  local first = tonumber(t.read(pids))
  t.wait(function()
    return not vim.uv.kill(first, 0)
  end, "the end of what was left in the background")
  t.turn(session, ("start echo $$ > %s; trap '' TERM; sleep 300"):format(pids))
  t.wait(function()
    return tonumber(t.read(pids)) ~= first
  end)
  local second = tonumber(t.read(pids))
  t.same(vim.uv.kill(second, 0), 0)
  session.client:finish("over", true)
  t.wait(function()
    return not vim.uv.kill(second, 0)
  end, "the end of the terminal")
end)

it("a terminal that is missing, or a program, is an error and nothing more", function()
  local session = t.session()
  t.turn(session, 'call terminal/output {"terminalId": "none"}')
  t.has(t.text(session), "terminal not found: none")
  t.turn(session, 'call terminal/create {"command": "/no/such/program"}')
  t.has(t.text(session), "/no/such/program did not start")
  t.turn(session, 'call terminal/create {"command": "true", "cwd": "/no/such/folder"}')
  t.has(t.text(session), "cwd is not a directory")
end)

require("acp_agent.client").stop_all()
