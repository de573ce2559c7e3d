--- `:checkhealth acp_agent`.

local config = require("acp_agent.config")
local inert = require("acp_agent.inert")

local M = {}

M.DEADLINE = 10000 -- milliseconds for a handshake

---@param name string
---@param agent acp_agent.AgentConfig
local function check_agent(name, agent)
  local program = agent.command[1]
  if vim.fn.executable(program) ~= 1 then
    return vim.health.error(("%s: there is no program %s"):format(name, program), {
      "install it, or set its full path in setup({ agents = … })",
      "for acp-agent: pipx install acp-agent-server",
    })
  end
  local running = require("acp_agent.client").running[name]
  local done, problem, client = false, nil, nil
  require("acp_agent.client").get(name, function(why, one)
    done, problem, client = true, why, one
  end)
  vim.wait(M.DEADLINE, function()
    return done
  end, 10)
  if not done then
    vim.health.error(("%s did not answer within %d seconds"):format(name, M.DEADLINE / 1000))
  elseif problem then
    vim.health.error(inert.line(problem, 600))
  elseif client then
    local version = client.version and (" " .. inert.line(client.version, 40)) or ""
    vim.health.ok(("%s: %s%s speaks version 1 of the protocol"):format(name, client.title, version))
    local offered = {}
    for _, what in ipairs({ "load", "resume", "list", "fork", "title", "delete", "archive" }) do
      if client:offers(what) then
        offered[#offered + 1] = what
      end
    end
    local all = #offered > 0 and table.concat(offered, ", ") or "no saved conversations"
    vim.health.info("it offers: " .. all)
  end
  local started = require("acp_agent.client").running[name]
  if started and not running then
    started:finish("check finished", true)
  end
end

--- Checks Neovim, the settings, the parsers, and each agent by a handshake.
function M.check()
  vim.health.start("acp-agent")
  if vim.fn.has("nvim-0.10") == 1 then
    vim.health.ok("Neovim " .. tostring(vim.version()))
  else
    vim.health.error("Neovim 0.10 or newer is required; this is " .. tostring(vim.version()))
    return
  end
  if #config.problems == 0 then
    vim.health.ok("settings are valid")
  end
  for _, problem in ipairs(config.problems) do
    vim.health.error("setup(): " .. problem)
  end
  if pcall(vim.treesitter.language.inspect, "markdown") then
    vim.health.ok("the chat is highlighted by treesitter")
  else
    vim.health.warn("no treesitter parser for Markdown; the chat uses syntax rules")
  end
  vim.health.start("acp-agent: agents")
  local names = vim.tbl_keys(config.current.agents)
  table.sort(names)
  for _, name in ipairs(names) do
    check_agent(name, config.current.agents[name])
  end
end

return M
