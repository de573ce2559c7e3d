--- Markdown in the buffers of a chat. In a transcript only the agent's own words have it: what the user
--- said would be a paragraph, and lines of a call that follow a list would go on with its last item, so
--- that `__init__.py` in them would be shown without its underscores.

local config = require("acp_agent.config")

local M = {}

local SAYS = "acp-agent-says?"

local INJECTIONS = ([[
(fenced_code_block
  (info_string (language) @injection.language)
  (code_fence_content) @injection.content
  (#SAYS @injection.content))
([(inline) (pipe_table_cell)] @injection.content
  (#SAYS @injection.content)
  (#set! injection.language "markdown_inline"))
]]):gsub("SAYS", SAYS)

---@param match table<integer, TSNode|TSNode[]>
---@param source integer|string the buffer
---@param predicate any[] its name, the number of a capture
---@return boolean whether what was captured is the agent's
local function says(match, _, source, predicate)
  local chat = require("acp_agent.chat").of_buffer(source)
  local nodes = match[predicate[2]]
  local node = type(nodes) == "table" and nodes[1] or nodes --[[@as TSNode?]]
  local entry = chat and node and chat.session.transcript:at((node:start()))
  return entry ~= nil and entry.kind == "agent"
end

--- Highlights Markdown as it is written, everywhere.
---@param buf integer
function M.start(buf)
  if config.current.chat.markdown and not pcall(vim.treesitter.start, buf, "markdown") then
    vim.bo[buf].syntax = "markdown"
  end
end

--- Highlights Markdown in a transcript, where it is the agent's.
---@param buf integer
function M.start_transcript(buf)
  vim.treesitter.query.add_predicate(SAYS, says, { force = true, all = true })
  -- The parser of a buffer is made once: starting the highlighting finds this one.
  pcall(vim.treesitter.get_parser, buf, "markdown", { injections = { markdown = INJECTIONS } })
  M.start(buf)
end

return M
