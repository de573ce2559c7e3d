--- What a user may set, with its defaults, and what is said about a mistake in it.

local M = {}

---@class acp_agent.AgentConfig
---@field command string[] the program and its arguments
---@field env? table<string, string> variables beside those of the editor
---@field mcp_servers? table[] servers for the agent, in the protocol's form (McpServer)

---@class acp_agent.Config
M.defaults = {
  --- The agents that can be chosen, by name; any command that speaks the protocol.
  agents = { ["acp-agent"] = { command = { "acp-agent" } } },
  --- The name of the one that is used when none is named.
  agent = "acp-agent",
  chat = {
    position = "right", -- "right", "left", "bottom" or "tab"
    width = 0.4, -- of the editor's columns; a number of columns from 2 on
    height = 0.4, -- at the bottom, likewise
    prompt_height = 6, -- lines of the window for the prompt
    markdown = true, -- highlight Markdown, by treesitter where its parser is there
    conceal = true, -- hide the marks of Markdown outside the cursor's line
    max_output_lines = 400, -- lines of a tool's output in the chat; all of it with "details"
    render_interval = 40, -- milliseconds between two renderings at least
    thoughts = true, -- show what the model thinks, folded
  },
  prompt = {
    auto_complete = true, -- offer commands after "/" and files after "@" while typing
  },
  review = {
    auto_open = true, -- open the diff when an edit is asked about and you are in the chat
    grace = 300, -- milliseconds in which keys decide nothing in a diff that opened by itself
    tell_agent = true, -- tell the agent which hunks were rejected
  },
  permission = {
    notify = true, -- notify when something is asked and the chat is not visible
  },
  files = {
    read = true, -- the agent reads through the editor: what is not saved is what it sees
    write = true, -- the agent writes through the editor
    save = true, -- save the buffers that it writes
  },
  terminals = true, -- the agent may run its commands as processes of the editor's
  while_running = "steer", -- what a prompt does during a turn: "steer" where it can, or "queue"
  timeouts = { -- milliseconds
    initialize = 30000,
    request = 60000,
    cancel = 10000,
  },
  icons = {
    thought = "∴",
    pending = "○",
    in_progress = "●",
    completed = "✓",
    failed = "✗",
    cancelled = "⊘",
    asking = "?",
  },
  --- What the keys do, in the chat, its prompt, and the review of a diff: keys by the name of the
  --- action, false for none. Each action is `<Plug>(acp-agent-NAME)` as well.
  keys = {
    chat = {
      allow = "a",
      allow_always = "A",
      reject = "r",
      reject_always = "R",
      review = "d",
      open = "<CR>",
      details = "K",
      cancel = "<C-c>",
      prompt = "i",
      next_entry = "]]",
      previous_entry = "[[",
      options = "go",
      close = "q",
      help = "g?",
    },
    prompt = {
      send = "<CR>",
      send_insert = "<C-s>",
      queue = "<M-CR>",
      cancel = "<C-c>",
      previous_prompt = "<M-p>",
      next_prompt = "<M-n>",
    },
    review = {
      accept_hunk = "a",
      reject_hunk = "r",
      accept_all = "A",
      reject_all = "R",
      next_hunk = "]c",
      previous_hunk = "[c",
      close_review = "q",
    },
  },
}

local POSITIONS = { right = true, left = true, bottom = true, tab = true }

--- Rules beyond the types of the defaults.
local CHECKS = {
  ["chat.position"] = function(value)
    return POSITIONS[value], "must be right, left, bottom or tab"
  end,
  ["while_running"] = function(value)
    return value == "steer" or value == "queue", "must be steer or queue"
  end,
}
for _, name in ipairs({
  "chat.width",
  "chat.height",
  "chat.prompt_height",
  "chat.max_output_lines",
  "chat.render_interval",
  "timeouts.initialize",
  "timeouts.request",
  "timeouts.cancel",
}) do
  CHECKS[name] = function(value)
    return value > 0, "must be greater than 0"
  end
end

--- The known name that a mistaken one resembles most.
---@param name string
---@param known table<string, any>
---@return string? nil where none is near
local function nearest(name, known)
  local best, least
  for candidate in pairs(known) do
    local row = {}
    for j = 0, #candidate do
      row[j] = j
    end
    for i = 1, #name do
      local before = row[0]
      row[0] = i
      for j = 1, #candidate do
        local cost = name:byte(i) == candidate:byte(j) and 0 or 1
        local here = row[j]
        row[j] = math.min(row[j] + 1, row[j - 1] + 1, before + cost)
        before = here
      end
    end
    if not least or row[#candidate] < least then
      best, least = candidate, row[#candidate]
    end
  end
  return least and least <= math.max(2, #name / 3) and best or nil
end

---@param name string
---@param agent any
---@param problems string[]
---@return acp_agent.AgentConfig?
local function checked_agent(name, agent, problems)
  local path = "agents." .. name
  local function problem(text)
    problems[#problems + 1] = path .. text
  end
  if type(agent) ~= "table" then
    problem(" must be a table with a command")
    return nil
  end
  for key in pairs(agent) do
    if key ~= "command" and key ~= "env" and key ~= "mcp_servers" then
      problem(("." .. "%s is unknown; there are command, env, mcp_servers"):format(tostring(key)))
    end
  end
  local command = agent.command
  if type(command) == "string" and command ~= "" then
    command = { command }
  end
  local good = type(command) == "table" and vim.islist(command) and #command > 0
  for _, word in ipairs(good and command or {}) do
    good = good and type(word) == "string"
  end
  if not good then
    problem(".command must be a list of strings: the program and its arguments")
    return nil
  end
  local env = {}
  for variable, value in pairs(type(agent.env) == "table" and agent.env or {}) do
    if type(variable) == "string" and (type(value) == "string" or type(value) == "number") then
      env[variable] = tostring(value)
    else
      problem((".env.%s must be a string"):format(tostring(variable)))
    end
  end
  local servers = agent.mcp_servers
  if servers ~= nil and not (type(servers) == "table" and vim.islist(servers)) then
    problem(".mcp_servers must be a list")
    servers = nil
  end
  return { command = command, env = env, mcp_servers = servers or {} }
end

---@param defaults table
---@param given any
---@param path string
---@param problems string[]
---@return table
local function merged(defaults, given, path, problems)
  local result = vim.deepcopy(defaults)
  for key, value in pairs(given) do
    local name = path .. tostring(key)
    local default = defaults[key]
    if name == "agents" then
      result.agents = type(value) == "table" and result.agents or nil
      for agent, settings in pairs(type(value) == "table" and value or {}) do
        result.agents[agent] = checked_agent(tostring(agent), settings, problems) or result.agents[agent]
      end
      if type(value) ~= "table" then
        result.agents = vim.deepcopy(defaults.agents)
        problems[#problems + 1] = "agents must be a table of agents by name"
      end
    elseif default == nil then
      local meant = nearest(tostring(key), defaults)
      local hint = meant and ("; is %s meant?"):format(path .. meant) or ""
      problems[#problems + 1] = name .. " is unknown" .. hint
    elseif type(default) == "table" then
      if type(value) == "table" then
        result[key] = merged(default, value, name .. ".", problems)
      else
        problems[#problems + 1] = ("%s must be a table, not a %s"):format(name, type(value))
      end
    elseif vim.startswith(name, "keys.") then
      if type(value) == "string" or value == false then
        result[key] = value
      else
        problems[#problems + 1] = name .. " must be a key, or false for none"
      end
    elseif type(value) ~= type(default) then
      problems[#problems + 1] = ("%s must be a %s, not a %s"):format(name, type(default), type(value))
    else
      local check = CHECKS[name]
      local good, rule = true, nil
      if check then
        good, rule = check(value)
      end
      if good then
        result[key] = value
      else
        problems[#problems + 1] = name .. " " .. rule
      end
    end
  end
  return result
end

--- What was said wrong in the last `set`.
---@type string[]
M.problems = {}

---@type acp_agent.Config
M.current = vim.deepcopy(M.defaults)

--- Makes settings the current ones. What is wrong in them keeps its default.
---@param given? table
---@return string[] problems each names a setting and says what is wrong with it
function M.set(given)
  local problems = {}
  if given ~= nil and type(given) ~= "table" then
    given, problems = {}, { "setup() expects a table" }
  end
  local config = merged(M.defaults, given or {}, "", problems)
  if not config.agents[config.agent] then
    local names = vim.tbl_keys(config.agents)
    table.sort(names)
    problems[#problems + 1] = ("agent is %s, which is not one of agents: %s"):format(
      config.agent,
      table.concat(names, ", ")
    )
    config.agent = config.agents[M.defaults.agent] and M.defaults.agent or names[1]
  end
  table.sort(problems)
  M.current, M.problems = config, problems
  return problems
end

return M
