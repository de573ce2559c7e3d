-- An agent as a whole: how it starts, what goes wrong, how it ends.
local it = ...
local t = require("helpers")

--- Why a client of this command does not become ready.
local function problem_of(command, settings)
  require("acp_agent.client").stop_all()
  t.told = {}
  local all = vim.tbl_deep_extend(
    "force",
    { agents = { strange = { command = command } }, agent = "strange" },
    settings or {}
  )
  t.same(require("acp_agent").setup(all), true)
  local problem, client
  require("acp_agent.client").get("strange", function(why, one)
    problem, client = why, one
  end)
  t.wait(function()
    return problem or client
  end, "an answer", 10000)
  return problem
end

it("an agent that is missing is named, with what to do", function()
  local problem = problem_of({ "/no/such/agent" })
  t.has(problem, "program not found: /no/such/agent; install it")
  t.same(require("acp_agent.client").running.strange, nil)
end)

it("an agent that dies at start is told with its last words, inert", function()
  local problem = problem_of(t.agent("dies"))
  t.has(problem, "exited with code 3: warming up / no key is configured␛[31m")
end)

it("an agent of another version is told and ended", function()
  t.has(problem_of(t.agent("version")), "uses version 2 of the protocol; this plugin supports version 1")
end)

it("an agent whose answer is no answer is told", function()
  t.has(problem_of(t.agent("wrong")), "uses version ?")
end)

it("an agent that never answers is given up after the deadline, and ended", function()
  local problem = problem_of(t.agent("silent"), { timeouts = { initialize = 200 } })
  t.has(problem, "did not respond to initialize within 0.2 seconds")
end)

it("lines that are no messages are told, and what follows them is read", function()
  local session = t.session("garbage")
  t.turn(session, "garbage")
  local text = t.text(session)
  t.has(text, "an invalid line (it is not JSON): this is no JSON")
  t.has(text, "keeps sending invalid lines")
  t.has(text, "still here")
  t.same(#t.told + select(2, text:gsub("invalid line", "")), 4)
  assert(not text:find("\27", 1, true))
end)

it("a line that is too long is left out, told, and what follows it is read", function()
  local lines = require("acp_agent.lines")
  local session = t.session()
  local limit = lines.LINE_LIMIT
  lines.LINE_LIMIT = 100000
  t.turn(session, "long 250000")
  lines.LINE_LIMIT = limit
  t.has(t.text(session), "skipped a message that is too long (250000 bytes)")
  t.has(t.text(session), "after it")
end)

it("an agent that advertises nothing is used as it is", function()
  local session = t.session("bare")
  t.same(
    { session.client:steers(), session.client:offers("load"), session.client:offers("list") },
    { false, false, false }
  )
  t.turn(session, "hello")
  t.has(t.text(session), "hello")
end)

it("an agent that dies in a turn is told with its last words, and started again goes on", function()
  local session = t.session()
  t.say(session, "die")
  t.wait(function()
    return session.problem
  end, "its end")
  t.has(session.problem, "exited with code 9: something broke")
  t.has(t.text(session), "last words")
  t.same(session.turn, nil)
  t.has(session:submit("x", {}), "exited with code 9")
  local revived
  require("acp_agent.sessions").revive(session, function(problem, one)
    revived = problem or one
  end)
  t.wait(function()
    return revived
  end)
  t.same({ revived == session, session.problem }, { true, nil })
  t.turn(session, "again")
  t.has(t.text(session), "last words")
  t.has(t.text(session), "again")
end)

it("what an agent leaves behind ends with it", function()
  local session, folder = t.session()
  t.say(session, "orphan " .. folder .. "/pid")
  t.wait(function()
    return session.problem
  end, "its end")
  local pid = tonumber(t.read(folder .. "/pid"))
  t.wait(function()
    return not vim.uv.kill(pid, 0)
  end, "the end of what it left")
end)

it("the end of the agent ends its process group", function()
  local session = t.session()
  local pid = session.client.process.pid
  session.client:finish("over", true)
  t.wait(function()
    return not vim.uv.kill(-pid, 0)
  end, "its end")
  t.has(t.text(session), "over")
end)

require("acp_agent.client").stop_all()
