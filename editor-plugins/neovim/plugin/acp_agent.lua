-- Loaded at start: the command, the mappings, the highlight groups; all else when it is used.
if vim.g.loaded_acp_agent then
  return
end
vim.g.loaded_acp_agent = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("acp-agent needs Neovim 0.10 or newer", vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command("AcpAgent", function(command)
  require("acp_agent").command(command)
end, {
  nargs = "*",
  range = true,
  desc = "A coding agent over the Agent Client Protocol",
  complete = function(lead, line)
    return require("acp_agent").complete(lead, line)
  end,
})

-- stylua: ignore
local names = {
  "accept_all", "accept_hunk", "add", "agent", "allow", "allow_always", "answer", "archive", "cancel",
  "close", "close_review", "commands", "context", "delete", "details", "finish", "fork", "help", "load",
  "log", "login", "logout", "mode", "model", "new", "next_entry", "next_hunk", "next_prompt", "open",
  "open_chat", "options", "previous_entry", "previous_hunk", "previous_prompt", "prompt", "queue",
  "reject", "reject_all", "reject_always", "reject_hunk", "rename", "restart", "resume", "review", "send",
  "sessions", "stop", "thought_level", "toggle",
}
for _, name in ipairs(names) do
  vim.keymap.set({ "n", "i" }, ("<Plug>(acp-agent-%s)"):format((name:gsub("_", "-"))), function()
    require("acp_agent").run(name)
  end, { desc = "acp-agent: " .. name })
end
vim.keymap.set("x", "<Plug>(acp-agent-add)", ":AcpAgent add<CR>", { silent = true, desc = "acp-agent: add" })

local group = vim.api.nvim_create_augroup("acp_agent", {})
local function highlight()
  require("acp_agent.highlights").define()
end
vim.api.nvim_create_autocmd("ColorScheme", { group = group, callback = highlight })
highlight()

vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = group,
  callback = function()
    require("acp_agent.chat.names").forget_restored()
  end,
})

vim.api.nvim_create_autocmd("VimLeavePre", {
  group = group,
  callback = function()
    if package.loaded["acp_agent.client"] then
      require("acp_agent.client").stop_all()
    end
  end,
})
