local it = ...
local t = require("helpers")
local transcript = require("acp_agent.transcript")

--- A list of lines kept up to date by the operations, as a buffer would be.
local function mirror(model)
  local lines = {}
  local function draw()
    model:flush(function(operation)
      local row = operation.row
      if operation.kind == "text" then
        local line = assert(lines[row + 1], "row " .. row .. " is not there")
        lines[row + 1] = line:sub(1, operation.col) .. operation.lines[1] .. line:sub(operation.end_col + 1)
      elseif operation.kind == "line" then
        assert(lines[row + 1], "row " .. row .. " is not there")
        lines[row + 1] = operation.lines[1]
      elseif operation.kind == "lines" then
        for _ = 1, operation.count do
          table.remove(lines, row + 1)
        end
        for index, one in ipairs(operation.lines) do
          table.insert(lines, row + index, one)
        end
      elseif operation.kind == "marks" then
        for _, mark in ipairs(operation.marks) do
          assert(mark.row < operation.count, "a mark outside its entry")
        end
      end
      t.same(lines, model:lines(), "after " .. operation.kind)
    end)
    return lines
  end
  return draw
end

local function chunk(text, id, kind)
  return {
    sessionUpdate = kind or "agent_message_chunk",
    content = { type = "text", text = text },
    messageId = id,
  }
end

local function call(id, fields)
  return vim.tbl_extend("force", { sessionUpdate = "tool_call_update", toolCallId = id }, fields)
end

it("pieces of a message become its lines", function()
  local model = transcript.new()
  local draw = mirror(model)
  model:said("hi\nthere")
  model:apply(chunk("Hel"))
  draw()
  model:apply(chunk("lo\nwor"))
  model:apply(chunk("ld"))
  t.same(draw(), { "▍ hi", "▍ there", "", "Hello", "world" })
end)

it("another message id begins another message", function()
  local model = transcript.new()
  model:apply(chunk("one", "m1"))
  model:apply(chunk("two", "m2"))
  t.same(mirror(model)(), { "one", "", "two" })
end)

it("a fence that is left open ends with its message", function()
  local model = transcript.new()
  local draw = mirror(model)
  model:apply(chunk("```lua\nx = 1\n\n\n"))
  draw()
  model:apply(call("c", { title = "Read" }))
  t.same(draw(), { "```lua", "x = 1", "```", "", "    ○ Read" })
end)

it("a call is one line with its result folded below, and a new state changes only that", function()
  local model = transcript.new({ root = "/w" })
  local draw = mirror(model)
  model:apply(call("c", { title = "Read a.lua", status = "pending" }))
  draw()
  local text = "```\nx\ny\n```"
  model:apply(call("c", {
    status = "completed",
    locations = { { path = "/w/a.lua", line = 3 } },
    content = { { type = "content", content = { type = "text", text = text } } },
  }))
  t.same(draw(), { "    ✓ Read a.lua  (3)", "      a.lua:3", "      x", "      y" })
  t.same({ model:fold_level(0), model:fold_level(1), model:fold_level(3) }, { ">1", 1, 1 })
end)

it("a call that asks is not folded, and is again when it was answered", function()
  local model = transcript.new()
  local draw = mirror(model)
  model:apply(call("c", { title = "Edit", rawInput = { a = 1 } }))
  model:asking("c", { { "Allow this?", "AcpAgentAsk" } })
  t.same(draw(), { "    ? Edit", "      Allow this?" })
  t.same(model:fold_level(0), 0)
  local diffs = { { type = "diff", path = "/a", oldText = "x\n", newText = "y\n" } }
  model:apply(call("c", { content = diffs }))
  model:asking("c", nil)
  local changed = {}
  model:flush(function(operation)
    changed[operation.row] = true
  end)
  t.same({ changed[0], model:fold_level(0) }, { true, ">1" }, "the line that folds is drawn again")
end)

it("a diff is written out with what comes and goes counted", function()
  local model = transcript.new({ root = "/w" })
  local diffs = { { type = "diff", path = "/w/a", oldText = "x\nk\n", newText = "y\nk\n" } }
  model:apply(call("c", { title = "Edit", content = diffs }))
  t.same(mirror(model)(), {
    "    ○ Edit  +1 −1",
    "      a  +1 −1",
    "      @@ -1,2 +1,2 @@",
    "      -x",
    "      +y",
    "       k",
  })
end)

it("null leaves what a call had, and an empty list takes it away", function()
  local model = transcript.new()
  local draw = mirror(model)
  model:apply(call("c", { title = "T", locations = { { path = "/a" } } }))
  draw()
  model:apply(call("c", { title = vim.NIL, locations = vim.NIL, content = vim.NIL }))
  t.same(draw(), { "    ○ T  (1)", "      /a" })
  model:apply(call("c", { locations = {} }))
  t.same(draw(), { "    ○ T" })
end)

it("live output of a terminal grows in its call, also by way of _meta", function()
  local model = transcript.new()
  local draw = mirror(model)
  local content = { { type = "terminal", terminalId = "x" } }
  model:apply(call("c", { title = "Run", status = "in_progress", content = content }))
  draw()
  model:terminal_output("x", "one\n\27[31mtw")
  draw()
  model:apply(call("c", { _meta = { terminal_output = { terminal_id = "x", data = "o\27[0m\n" } } }))
  model:apply(call("c", { _meta = { terminal_exit = { terminal_id = "x", exit_code = 1 } } }))
  t.same(draw(), { "    ● Run  (3)", "      one", "      two", "      [exit code 1]" })
end)

it("only the end of a long output is in the chat", function()
  local model = transcript.new({ max_output_lines = 2 })
  model:apply(
    call("c", { content = { { type = "content", content = { type = "text", text = "1\n2\n3\n4" } } } })
  )
  t.same(vim.list_slice(mirror(model)(), 2), { "      … 2 lines above", "      3", "      4" })
end)

it("a plan is replaced in its place", function()
  local model = transcript.new()
  local draw = mirror(model)
  local function plan(status)
    return { sessionUpdate = "plan", entries = { { content = "one", status = status, priority = "high" } } }
  end
  model:apply(plan("pending"))
  model:apply(chunk("text"))
  draw()
  model:apply(plan("completed"))
  t.same(draw(), { "    Plan", "      ✓ one !", "", "text" })
end)

it("null clears a compaction's error, and absent leaves it", function()
  local model = transcript.new()
  local draw = mirror(model)
  local function update(fields)
    model:apply(vim.tbl_extend("force", { sessionUpdate = "compaction_update", compactionId = "k" }, fields))
    return draw()[1]
  end
  update({ status = "failed", error = { message = "why" } })
  t.has(update({ status = "failed" }), "why")
  t.same(update({ status = "completed", error = vim.NIL }), "    ⇣ The conversation was summarized")
end)

it("what the user said is not shown twice where the agent says it back", function()
  local model = transcript.new()
  model:said("hello")
  model:apply(chunk("hello", nil, "user_message_chunk"))
  t.same(mirror(model)(), { "▍ hello" })
end)

it("a line of any length is broken before it is drawn", function()
  local model = transcript.new()
  local draw = mirror(model)
  for _ = 1, 300 do
    model:apply(chunk(("é"):rep(100)))
    if model.entries[1] and #model.entries[1].pieces > 40 then
      draw()
    end
  end
  local lines = draw()
  t.same(table.concat(lines), ("é"):rep(30000))
  for _, line in ipairs(lines) do
    assert(#line <= 8000)
  end
end)

it("a text of any size costs little, and what is not shown is told", function()
  local model = transcript.new()
  local draw = mirror(model)
  local start = vim.uv.hrtime()
  local text = ("é"):rep(10000000)
  model:apply(chunk(text, "m"))
  model:apply(chunk("and on", "m"))
  model:apply(
    call("c", { title = text, content = { { type = "content", content = { type = "text", text = text } } } })
  )
  local lines = draw()
  local seconds = (vim.uv.hrtime() - start) / 1e9
  assert(seconds < 4, seconds .. " s")
  local all = table.concat(lines, "\n")
  assert(#all < 2000000, #all)
  t.has(all, "… 18951424 bytes more are not shown\nand on")
  t.has(all, "… the beginning is left out")
end)

it("random updates: the operations lead to the lines, wherever a flush falls", function()
  math.randomseed(11)
  local texts = { "a", "b\n", "\n", "\n\n```\n", "x\r", "\ny", "- é\n", "```", "long line " }
  for _ = 1, 60 do
    local model = transcript.new({ max_output_lines = 3 })
    local draw = mirror(model)
    local other = transcript.new({ max_output_lines = 3 })
    for _ = 1, 60 do
      local kind = math.random(8)
      local update
      if kind <= 3 then
        update = chunk(texts[math.random(#texts)], math.random(4) == 1 and tostring(math.random(3)) or nil)
      elseif kind == 4 then
        update = chunk(texts[math.random(#texts)], nil, "agent_thought_chunk")
      elseif kind == 5 then
        update = { sessionUpdate = "plan", entries = { { content = texts[math.random(#texts)] } } }
      else
        local text = texts[math.random(#texts)]:rep(math.random(4))
        local content = { type = "content", content = { type = "text", text = text } }
        update =
          call("c" .. math.random(4), { title = text, content = math.random(3) == 1 and {} or { content } })
      end
      model:apply(update)
      other:apply(update)
      if math.random(3) == 1 then
        draw()
      end
    end
    local lines = draw()
    t.same(lines, mirror(other)())
    for row = 0, #lines - 1 do
      local entry, offset = model:at(row)
      local first = model:rows(entry)
      t.same(first + offset, row)
    end
  end
end)

it("100,000 pieces and a thousand calls cost little", function()
  local model = transcript.new()
  local start = vim.uv.hrtime()
  for index = 1, 100000 do
    model:apply(chunk("word " .. (index % 12 == 0 and "\n" or "")))
    if index % 5000 == 0 then
      model:flush(function() end)
    end
  end
  for index = 1, 1000 do
    model:apply(call("c" .. index, { title = "T" }))
  end
  model:flush(function() end)
  for index = 1, 1000 do
    model:apply(call("c" .. index, { status = "completed", locations = { { path = "/a" } } }))
  end
  model:flush(function() end)
  local took = (vim.uv.hrtime() - start) / 1e6
  io.stdout:write(("  (the model alone: %d ms)\n"):format(took))
  t.same(#model:lines(), 8333 + 1 + 2000 + 1)
end)
