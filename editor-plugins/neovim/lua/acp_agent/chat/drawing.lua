--- When a chat is drawn: as often as it can be without holding up the editor.

local config = require("acp_agent.config")
local inert = require("acp_agent.inert")

local SLOW = 120 -- milliseconds of drawing, twice in a row, that cost a chat its Markdown

---@class acp_agent.Chat
local Chat = {}

--- Draws with the next tick, and then not again before the interval is over.
---@private
function Chat:draw_soon()
  if self.drawing then
    return
  end
  self.drawing = true
  local now = vim.uv.now()
  local wait = math.max(0, (self.drawn_at or 0) + config.current.chat.render_interval - now)
  vim.defer_fn(function()
    self.drawing = false
    self:draw()
  end, wait)
end

--- Draws what is not drawn yet, at once.
function Chat:draw()
  local before = vim.uv.hrtime()
  local visible = #vim.fn.win_findbuf(self.buf) > 0
  self.canvas:draw()
  local typing = vim.fn.pumvisible() == 1 or vim.api.nvim_get_mode().mode:sub(1, 1) == "c"
  if visible and not typing then
    vim.cmd.redraw() -- now, to know what it takes
  end
  -- Drawing that takes long is done less often, so that it takes at most a third of the time.
  local took = (vim.uv.hrtime() - before) / 1e6
  self.drawn_at = vim.uv.now() + 2 * took
  self.slow = took > SLOW and (self.slow or 0) + 1 or 0
  if self.slow >= 2 and vim.treesitter.highlighter.active[self.buf] then
    vim.treesitter.stop(self.buf) -- a paragraph without end is parsed anew with every piece
  end
end

---@private
function Chat:show_state_soon()
  if not self.stating then
    self.stating = true
    vim.schedule(function()
      self.stating = false
      self:show_state()
    end)
  end
end

---@private
function Chat:show_state()
  local session = self.session
  local title = session.title and ("  " .. inert.statusline(session.title, 80)) or ""
  -- What does not fit is left out behind the state.
  local bar = (" %s%s%%<"):format(require("acp_agent.status").line(session), title)
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    vim.wo[win][0].winbar = bar
  end
  self.prompt:show_state()
  vim.api.nvim_exec_autocmds("User", { pattern = "AcpAgentStatus", modeline = false })
  vim.cmd.redrawstatus({ bang = true })
end

return Chat
