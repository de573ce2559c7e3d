--- Questions that take the keys: they wait until the user is there, and not typing something else.

local ui = require("acp_agent.ui")

local M = {}

---@class acp_agent.Question
---@field here fun(): boolean whether the user is where the question belongs
---@field show fun()

---@type acp_agent.Question[]
local waiting = {}
local watching = false

--- Whether a key that is pressed now is meant for what is on the screen, and not part of something typed.
---@return boolean
local function is_free()
  local mode = vim.api.nvim_get_mode()
  return mode.mode == "n" and not mode.blocking and vim.fn.getcmdwintype() == "" and vim.fn.getchar(1) == 0
end

local function look()
  for index, question in ipairs(waiting) do
    if is_free() and question.here() then
      table.remove(waiting, index)
      return question.show()
    end
  end
end

local function watch()
  if watching then
    return
  end
  watching = true
  vim.api.nvim_create_autocmd({ "ModeChanged", "BufEnter", "WinEnter" }, {
    group = vim.api.nvim_create_augroup("acp_agent.attention", {}),
    callback = function()
      if #waiting > 0 then
        vim.schedule(look)
      end
    end,
  })
end

--- Asks now, or tells the user and asks when they are there.
---@param text string what is told
---@param question acp_agent.Question
---@return fun() withdraw it is not asked any more
function M.ask(text, question)
  if is_free() and question.here() then
    question.show()
    return function() end
  end
  waiting[#waiting + 1] = question
  watch()
  ui.notify(text .. " (:AcpAgent answer)", "warning")
  return function()
    waiting = vim.tbl_filter(function(other)
      return other ~= question
    end, waiting)
  end
end

--- Asks the oldest question that waits, since the user wants it.
---@return boolean whether there was one
function M.answer()
  local question = table.remove(waiting, 1)
  if question then
    question.show()
  end
  return question ~= nil
end

return M
