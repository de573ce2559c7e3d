--- The windows of a chat: where they stand, and how they show what is in them.

local config = require("acp_agent.config")

local M = {}

--- The window that shows a buffer in a tab.
---@param buf integer
---@param tab? integer this one by default
---@return integer?
function M.of(buf, tab)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(tab or 0)) do
    if vim.api.nvim_win_get_buf(win) == buf then
      return win
    end
  end
  return nil
end

--- The windows of a tab but those that float above others, which cannot be left alone.
---@param tab? integer this one by default
---@return integer[]
function M.standing(tab)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_config(win).relative == ""
  end, vim.api.nvim_tabpage_list_wins(tab or 0))
end

--- Sets options of a window for the buffer that it shows.
---@param win integer
---@param options table<string, any>
local function set(win, options)
  for name, value in pairs(options) do
    vim.wo[win][0][name] = value
  end
end

--- How a transcript is shown.
---@param win integer
function M.dress_transcript(win)
  local chat = config.current.chat
  set(win, {
    wrap = true,
    linebreak = true,
    breakindent = true,
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    list = false,
    spell = false,
    cursorline = false,
    conceallevel = chat.conceal and 2 or 0,
    concealcursor = chat.conceal and "nc" or "",
    foldmethod = "expr",
    foldexpr = "v:lua.require'acp_agent.chat'.foldexpr()",
    foldtext = "",
    foldlevel = 0,
    foldenable = true,
    foldminlines = 0,
    fillchars = "fold: ",
    winfixwidth = chat.position == "right" or chat.position == "left",
  })
end

---@param size number a part, or a number of cells
---@param whole integer
---@return integer
local function cells(size, whole)
  return math.max(10, math.floor(size <= 1 and size * whole or size))
end

--- A window for a transcript, where the settings want it.
---@param buf integer
---@return integer
function M.open_transcript(buf)
  local chat = config.current.chat
  if chat.position == "tab" then
    vim.cmd("tab split")
    vim.api.nvim_win_set_buf(0, buf)
    return vim.api.nvim_get_current_win()
  elseif chat.position == "bottom" then
    local height = cells(chat.height, vim.o.lines)
    return vim.api.nvim_open_win(buf, true, { split = "below", win = -1, height = height })
  end
  local width = cells(chat.width, vim.o.columns)
  return vim.api.nvim_open_win(buf, true, { split = chat.position, win = -1, width = width })
end

--- A window for a transcript above that of its prompt, where that one was left alone.
---@param buf integer
---@param prompt integer
---@return integer
function M.open_above(buf, prompt)
  local win = vim.api.nvim_open_win(buf, true, { split = "above", win = prompt })
  vim.api.nvim_win_set_height(prompt, math.floor(config.current.chat.prompt_height))
  return win
end

--- Keeps the part of the editor's columns that the windows of a transcript have when those change, be it
--- that of the settings or what the user made of it; a number of columns stays that number.
---@param buf integer
function M.keep_share(buf)
  local columns, shares = vim.o.columns, {}
  local function beside()
    local chat = config.current.chat
    return (chat.position == "right" or chat.position == "left") and chat.width <= 1
  end
  local group = vim.api.nvim_create_augroup("acp_agent.share." .. buf, {})
  vim.api.nvim_create_autocmd("WinResized", {
    group = group,
    callback = function()
      for _, win in ipairs(vim.fn.win_findbuf(buf)) do
        local width = vim.api.nvim_win_get_width(win)
        if columns == vim.o.columns and not (shares[win] and shares[win].width == width) then
          shares[win] = { share = width / columns, width = width }
        end
      end
    end,
  })
  vim.api.nvim_create_autocmd("VimResized", {
    group = group,
    callback = function()
      columns = vim.o.columns
      for _, win in ipairs(beside() and vim.fn.win_findbuf(buf) or {}) do
        local share = shares[win] and shares[win].share or config.current.chat.width
        vim.api.nvim_win_set_width(win, cells(share, columns))
        shares[win] = { share = share, width = vim.api.nvim_win_get_width(win) }
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = buf,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
end

--- Calls back when a window that shows a buffer was closed.
---@param buf integer
---@param closed fun(tab: integer) where it was
function M.on_close(buf, closed)
  vim.api.nvim_create_autocmd("WinClosed", {
    buffer = buf,
    callback = function(event)
      local win = tonumber(event.match) --[[@as integer]]
      local tab = vim.api.nvim_win_is_valid(win) and vim.api.nvim_win_get_tabpage(win)
      vim.schedule(function()
        if tab and vim.api.nvim_tabpage_is_valid(tab) then
          closed(tab)
        end
      end)
    end,
  })
end

--- A window for a prompt, below that of its transcript.
---@param buf integer
---@param above integer
---@return integer
function M.open_prompt(buf, above)
  local height = math.floor(config.current.chat.prompt_height)
  local win = vim.api.nvim_open_win(buf, true, { split = "below", win = above, height = height })
  set(win, {
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    wrap = true,
    linebreak = true,
    list = false,
    cursorline = false,
    winfixheight = true,
  })
  return win
end

return M
