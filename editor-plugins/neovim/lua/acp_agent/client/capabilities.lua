local config = require("acp_agent.config")
local json = require("acp_agent.json")

--- What the editor says that it can do (ClientCapabilities).
---@return table
return function()
  local set = config.current
  return {
    fs = { readTextFile = set.files.read, writeTextFile = set.files.write },
    terminal = set.terminals,
    session = {
      notices = json.object(),
      compaction = json.object(),
      configOptions = { boolean = json.object() },
    },
    plan = json.object(),
    auth = { terminal = true },
    elicitation = { form = json.object(), url = json.object() },
    _meta = { terminal_output = true },
  }
end
