--- Looking around: the chat, the code that it is about, the options, the log.

local target = require("acp_agent.actions.target")
local ui = require("acp_agent.ui")

---@type table<string, acp_agent.Action>
local M = {}

M.open = {
  desc = "open the file of the tool call under the cursor",
  run = function()
    local chat = target.chat()
    local entry, offset = nil, 0
    if chat then
      entry, offset = chat:under_cursor()
    end
    if entry and entry.kind == "tool" then
      return require("acp_agent.navigate").open_entry(entry --[[@as acp_agent.ToolEntry]], offset)
    end
    vim.cmd("silent! normal! za")
  end,
}

M.details = {
  desc = "show the full tool call under the cursor",
  run = function()
    local chat = target.chat()
    local entry = chat and chat:under_cursor()
    if entry and entry.kind == "tool" then
      return require("acp_agent.navigate").details(entry --[[@as acp_agent.ToolEntry]])
    end
    ui.notify("no tool call here", "warning")
  end,
}

M.next_entry = {
  desc = "go to the next entry of the chat",
  run = function()
    target.with_session(function(_, chat)
      chat:move(1)
    end)
  end,
}

M.previous_entry = {
  desc = "go to the previous entry",
  run = function()
    target.with_session(function(_, chat)
      chat:move(-1)
    end)
  end,
}

M.mode = {
  desc = "choose the mode",
  run = function()
    target.with_session(function(session)
      require("acp_agent.options").choose(session, "mode")
    end)
  end,
}

M.model = {
  desc = "choose the model",
  run = function()
    target.with_session(function(session)
      require("acp_agent.options").choose(session, "model")
    end)
  end,
}

M.thought_level = {
  desc = "choose the thought level",
  run = function()
    target.with_session(function(session)
      require("acp_agent.options").choose(session, "thought_level")
    end)
  end,
}

M.options = {
  desc = "choose any option of the conversation",
  run = function()
    target.with_session(function(session)
      require("acp_agent.options").choose(session)
    end)
  end,
}

M.log = {
  desc = "show the last messages and the agent's stderr",
  run = function()
    target.with_session(function(session)
      local inert = require("acp_agent.inert")
      local lines = vim.tbl_map(function(line)
        return inert.line(line, 2100)
      end, session.client.log)
      local stderr = session.client.process and session.client.process.stderr or ""
      lines[#lines + 1] = "stderr:"
      vim.list_extend(lines, vim.split(inert.text(stderr), "\n", { plain = true }))
      require("acp_agent.navigate").scratch(lines)
    end)
  end,
}

M.help = {
  desc = "show the help",
  run = function()
    if pcall(vim.cmd.help, "acp-agent") then
      return
    end
    -- The tags of the help are not made; many who put a plugin in place by hand never do.
    local text = vim.api.nvim_get_runtime_file("doc/acp-agent.txt", false)[1]
    if not text then
      return ui.notify("help not found: the plugin folder has no doc/acp-agent.txt", "error")
    end
    vim.cmd("keepalt silent help")
    vim.cmd("keepalt silent view " .. vim.fn.fnameescape(text))
    vim.bo.filetype, vim.bo.buftype, vim.bo.buflisted, vim.bo.modifiable = "help", "help", false, false
  end,
}

return M
