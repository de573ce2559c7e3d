local it = ...
local t = require("helpers")
local config = require("acp_agent.config")

it("the defaults are right", function()
  t.same(config.set(), {})
  t.same(config.set({}), {})
end)

it("an unknown setting is named, with the one that may be meant", function()
  t.same(config.set({ chatt = {} }), { "chatt is unknown; is chat meant?" })
  t.same(config.set({ chat = { positon = "left" } }), { "chat.positon is unknown; is chat.position meant?" })
  t.same(config.set({ keys = { chat = { fly = "x" } } }), { "keys.chat.fly is unknown" })
  t.same(config.set({ agents = { a = { command = { "a" }, cmd = 1 } }, agent = "a" }), {
    "agents.a.cmd is unknown; there are command, env, mcp_servers",
  })
end)

it("a wrong value is told and its default holds, and the others count", function()
  local problems = config.set({ chat = { width = "wide", height = 0.5, position = "up" }, terminals = 1 })
  t.same(problems, {
    "chat.position must be right, left, bottom or tab",
    "chat.width must be a number, not a string",
    "terminals must be a boolean, not a number",
  })
  t.same({ config.current.chat.width, config.current.chat.height }, { 0.4, 0.5 })
end)

it("several agents can be named, and the default must be one of them", function()
  t.same(config.set({ agents = { other = { command = "other --acp" } }, agent = "other" }), {})
  t.same(config.current.agents.other.command, { "other --acp" })
  t.same(config.current.agents["acp-agent"].command, { "acp-agent" })
  t.same(config.set({ agent = "nobody" }), { "agent is nobody, which is not one of agents: acp-agent" })
  t.same(config.set({ agents = { x = { command = {} } } }), {
    "agents.x.command must be a list of strings: the program and its arguments",
  })
  t.same(config.set("text"), { "setup() expects a table" })
end)

it("keys can be changed and turned off", function()
  t.same(config.set({ keys = { chat = { allow = "<leader>y", reject = false } } }), {})
  t.same({ config.current.keys.chat.allow, config.current.keys.chat.reject }, { "<leader>y", false })
  t.same(
    config.set({ keys = { chat = { allow = 3 } } }),
    { "keys.chat.allow must be a key, or false for none" }
  )
end)

it("setup tells every mistake and goes on", function()
  t.told = {}
  t.same(require("acp_agent").setup({ nothing = 1, agent = 3 }), false)
  t.same(#t.told, 2)
  require("acp_agent").setup()
end)

it("every action has a word of :AcpAgent, a <Plug> and a place in the help", function()
  local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)))
  local help = t.read(here .. "/../../doc/acp-agent.txt") or ""
  for name, action in pairs(require("acp_agent.actions").all) do
    local plug = require("acp_agent.keys").plug(name)
    assert(vim.fn.maparg(plug, "n") ~= "" or vim.fn.maparg(plug, "n", false, true).callback, plug)
    t.has(help, plug)
    assert(action.desc ~= "")
  end
  for group in pairs(require("acp_agent.highlights").links) do
    t.has(help, group)
  end
  for kind, keys in pairs(config.defaults.keys) do
    for name in pairs(keys) do
      local action = name == "send_insert" and "send" or name
      assert(require("acp_agent.actions").all[action], kind .. "." .. name)
    end
  end
  for name in pairs(config.defaults) do
    t.has(help, "*acp-agent-" .. name:gsub("_", "-") .. "*")
  end
end)

it("the help has its tags", function()
  local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)))
  local folder = t.folder()
  t.write(folder .. "/acp-agent.txt", t.read(here .. "/../../doc/acp-agent.txt"))
  vim.cmd("helptags " .. folder)
  local tags = t.read(folder .. "/tags")
  local known = {}
  for tag in tags:gmatch("([^\t\n]+)\t[^\n]+\n") do
    known[tag] = true
  end
  for link in t.read(folder .. "/acp-agent.txt"):gmatch("|(acp%-agent[%w-]*)|") do
    assert(known[link], link .. " leads nowhere")
  end
  assert(known[":AcpAgent"] and known["acp_agent.setup()"])
end)

it("no function of the API is newer than Neovim 0.10", function()
  local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)))
  local since = {}
  for _, one in ipairs(vim.fn.api_info().functions) do
    since[one.name] = one.since
  end
  local level_of_0_10, seen = 12, 0
  for _, path in ipairs(vim.fn.glob(here .. "/../../{lua,plugin}/**/*.lua", true, true)) do
    for name in t.read(path):gmatch("vim%.api%.(nvim_[%w_]+)") do
      seen = seen + 1
      assert(since[name] and since[name] <= level_of_0_10, path .. ": " .. name)
    end
  end
  assert(seen > 50)
end)
