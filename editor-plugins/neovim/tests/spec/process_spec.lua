-- Reading from an agent that writes faster than its lines can be handled.
local it = ...
local t = require("helpers")
local lines_of = require("acp_agent.lines")
local process = require("acp_agent.process")

--- Runs a command to its end; its lines.
local function run(script, on_line)
  local lines, ended = {}, nil
  local started = assert(process.start({
    command = { "sh", "-c", script },
    on_line = function(line)
      lines[#lines + 1] = line
      on_line(line)
    end,
    on_too_long = error,
    on_exit = function(code)
      ended = code
    end,
  }))
  t.wait(function()
    return ended
  end, "its end", 20000)
  return lines, ended, started
end

it("a line whose handling breaks is the only one that is lost, and is told", function()
  t.told = {}
  local lines, code = run("seq 3", function(line)
    assert(line ~= "2", "cannot take two")
  end)
  t.same({ lines, code, #t.told }, { { "1", "2", "3" }, 0, 1 })
  t.has(t.told[1], "cannot take two")
end)

it("the editor gets its turn however many lines wait", function()
  local turns = 0
  local timer = vim.uv.new_timer()
  timer:start(
    1,
    1,
    vim.schedule_wrap(function()
      turns = turns + 1
    end)
  )
  local lines = run("seq 300", function()
    local start = vim.uv.hrtime()
    repeat
    until vim.uv.hrtime() - start > 1e6
  end)
  timer:stop()
  timer:close()
  t.same(#lines, 300)
  assert(turns > 20, turns .. " turns in 300 ms of handling")
end)

it("no more waits than the limit, and all lines come in their order", function()
  local limit = lines_of.WAITING_LIMIT
  lines_of.WAITING_LIMIT = 2000
  local lines = run("seq 20000; printf 'no line end'", function() end)
  lines_of.WAITING_LIMIT = limit
  t.same(#lines, 20000)
  t.same({ lines[1], lines[10000], lines[20000] }, { "1", "10000", "20000" })
end)

it("the exit is told after the last line, also where somebody holds the pipe open", function()
  local lines, code = run("sleep 100 & echo last; exit 7", function() end)
  t.same({ lines, code }, { { "last" }, 7 })
end)

it("the end of stderr is kept, and no more", function()
  local _, _, started = run("seq 100000 >&2; echo the end >&2", function() end)
  t.has(started.stderr, "the end\n")
  assert(#started.stderr <= process.STDERR_LIMIT)
end)

it("a folder that is not there, and a program that may not be run, are named", function()
  local folder = t.folder()
  t.write(folder .. "/plain", "x")
  local function problem(command, cwd)
    return select(2, process.start({ command = { command }, cwd = cwd, on_exit = error }))
  end
  t.has(problem(folder .. "/plain"), "may not be executed")
  t.has(problem("sh", folder .. "/none"), "folder not found: " .. folder .. "/none")
end)
