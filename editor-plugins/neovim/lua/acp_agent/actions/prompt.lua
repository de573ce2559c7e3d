--- Writing to the agent.

local target = require("acp_agent.actions.target")
local ui = require("acp_agent.ui")

---@param items acp_agent.ContextItem[]
local function add_context(items)
  local session = target.session()
  local function add(problem, opened)
    if not opened then
      return ui.notify(problem --[[@as string]], "error")
    end
    vim.list_extend(opened.context, items)
    local chat = require("acp_agent.chat").get(opened)
    chat:open()
    chat.prompt:show_state()
  end
  if session and not session.problem then
    return add(nil, session)
  end
  target.new(nil, add)
end

---@type table<string, acp_agent.Action>
local M = {}

M.prompt = {
  desc = "go to the prompt",
  run = function()
    target.with_session(function(_, chat)
      chat:open()
      vim.cmd.startinsert({ bang = true })
    end)
  end,
}

M.send = {
  desc = "send the prompt buffer, or the given text",
  run = function(arguments)
    target.with_session(function(session, chat)
      if arguments and #arguments > 0 then
        local text = table.concat(arguments, " ")
        local problem = session:submit(text, require("acp_agent.context").blocks(text, session))
        return problem and ui.notify(problem, "error")
      end
      chat.prompt:send()
    end)
  end,
}

M.queue = {
  desc = "send the prompt buffer when the turn ends",
  run = function()
    target.with_session(function(_, chat)
      chat.prompt:send(true)
    end)
  end,
}

M.previous_prompt = {
  desc = "show the previous prompt",
  run = function()
    target.with_session(function(_, chat)
      chat.prompt:recall(-1)
    end)
  end,
}

M.next_prompt = {
  desc = "show the next prompt",
  run = function()
    target.with_session(function(_, chat)
      chat.prompt:recall(1)
    end)
  end,
}

M.cancel = {
  desc = "cancel the running turn",
  run = function()
    target.with_session(function(session)
      session:cancel()
    end)
  end,
}

M.add = {
  desc = "attach the range, this file or the named files to the next prompt",
  run = function(arguments, range)
    local context, items = require("acp_agent.context"), {}
    local given = arguments or {}
    if range then
      items[1] = context.lines(vim.api.nvim_get_current_buf(), range[1], range[2])
    end
    if not range and #given == 0 then
      given = { vim.api.nvim_buf_get_name(0) }
    end
    for _, path in ipairs(given) do
      local item, problem = context.file(path)
      if not item then
        return ui.notify(problem --[[@as string]], "error")
      end
      items[#items + 1] = item
    end
    add_context(items)
  end,
}

M.context = {
  desc = "list the attachments of the next prompt, and remove some",
  run = function()
    target.with_session(function(session, chat)
      if #session.context == 0 then
        return ui.notify("the next prompt has no attachments; :AcpAgent add adds files and lines")
      end
      local items = {}
      for index, item in ipairs(session.context) do
        local label = require("acp_agent.context").label(item, session.cwd)
        items[index] = { label = label, index = index }
      end
      ui.select(items, "Take out", function(item)
        if item then
          table.remove(session.context, item.index)
          chat.prompt:show_state()
        end
      end)
    end)
  end,
}

M.commands = {
  desc = "choose one of the agent's commands",
  run = function()
    target.with_session(function(session, chat)
      local items = {}
      for _, one in ipairs(session.commands) do
        if type(one.name) == "string" then
          local detail = type(one.description) == "string" and one.description or ""
          items[#items + 1] = { label = "/" .. one.name, detail = detail, name = one.name }
        end
      end
      ui.select(items, "Commands of " .. session.client.title, function(item)
        if item then
          chat:open()
          chat.prompt:set("/" .. require("acp_agent.inert").line(item.name) .. " ")
        end
      end)
    end)
  end,
}

return M
