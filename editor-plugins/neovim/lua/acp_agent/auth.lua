--- Logging in, by the methods that the agent offers.

local json = require("acp_agent.json")
local ui = require("acp_agent.ui")

local M = {}

--- Runs the agent's program in a terminal, where it asks for itself (AuthMethodTerminal).
---@param client acp_agent.Client
---@param method table
---@param done fun(problem: string?)
local function in_terminal(client, method, done)
  local command = vim.list_extend({}, client.settings.command)
  vim.list_extend(command, json.strings(method, "args") or {})
  local env = vim.tbl_extend("force", {}, client.settings.env or {})
  for name, value in pairs(json.table(method, "env") or {}) do
    if type(name) == "string" and type(value) == "string" then
      env[name] = value
    end
  end
  vim.cmd("botright new")
  local buf = vim.api.nvim_get_current_buf()
  local options = {
    env = next(env) and env or nil,
    on_exit = function(_, code)
      if code == 0 and vim.api.nvim_buf_is_valid(buf) then
        vim.api.nvim_buf_delete(buf, { force = true })
      end
      done(code ~= 0 and ("the login exited with code %d"):format(code) or nil)
    end,
  }
  local started, job
  if vim.fn.has("nvim-0.11") == 1 then
    options.term = true
    started, job = pcall(vim.fn.jobstart, command, options)
  else
    started, job = pcall(vim.fn.termopen, command, options)
  end
  if not started or job <= 0 then
    return done("could not start the login")
  end
  vim.cmd.startinsert()
end

---@param client acp_agent.Client
---@param method table AuthMethod
---@param done fun(problem: string?)
local function by_method(client, method, done)
  local kind = json.string(method, "type") or "agent"
  if kind == "terminal" then
    return in_terminal(client, method, done)
  elseif kind ~= "agent" then
    return done("this login method is not supported")
  end
  -- No deadline: the user may be asked for something meanwhile.
  client:request("authenticate", { methodId = json.string(method, "id") }, function(error)
    done(error and error.message or nil)
  end, false)
end

--- Lets the user choose how to log in.
---@param client acp_agent.Client
---@param done? fun(problem: string?)
function M.login(client, done)
  done = done or function(problem)
    ui.notify(problem or "logged in", problem and "error" or "info")
  end
  local items = vim.tbl_map(function(method)
    local label = json.string(method, "name") or json.string(method, "id") or "?"
    return { label = label, detail = json.string(method, "description"), method = method }
  end, client.auth_methods)
  if #items == 0 then
    return done(client.title .. " offers no way to log in")
  end
  ui.select(items, "Log in to " .. client.title, function(item)
    if item then
      by_method(client, item.method, done)
    end
  end)
end

--- A request failed for want of a login: the user is offered one.
---@param client acp_agent.Client
---@param reason string
---@param again? fun() what to do once it worked
function M.offer(client, reason, again)
  local function logged_in(problem)
    if problem then
      return ui.notify(problem, "error")
    end
    ui.notify("logged in")
    if again then
      again()
    end
  end
  ui.notify(reason, "warning")
  require("acp_agent.attention").ask(client.title .. " wants a login", {
    here = function()
      return true
    end,
    show = function()
      M.login(client, logged_in)
    end,
  })
end

---@param client acp_agent.Client
function M.logout(client)
  if not json.offers(client.capabilities, "auth", "logout") then
    return ui.notify(client.title .. " offers no logout", "warning")
  end
  client:request("logout", json.object(), function(error)
    ui.notify(error and error.message or "logged out", error and "error" or "info")
  end)
end

return M
