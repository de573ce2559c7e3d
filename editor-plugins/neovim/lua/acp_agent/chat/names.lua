--- The names of a chat's buffers.

local M = {}

local SCHEME = "acp-agent://"
local made = 0

--- A name that no chat had yet.
---@param agent string
---@return string
function M.new(agent)
  made = made + 1
  return ("%s%s/%d"):format(SCHEME, agent:gsub("[^%w_-]", "-"), made)
end

--- Takes away what a session file of Neovim (|:mksession|) puts where a chat was: an empty file with its
--- name, which the next chat could not have.
function M.forget_restored()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.startswith(vim.api.nvim_buf_get_name(buf), SCHEME) and vim.bo[buf].buftype == "" then
      vim.api.nvim_buf_delete(buf, { force = true })
    end
  end
end

return M
