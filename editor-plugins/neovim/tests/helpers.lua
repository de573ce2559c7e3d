-- What specs share.

local M = {}

local here = vim.fs.dirname(vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)))

--- The strange agent, with a conduct.
---@param conduct? string
---@return string[]
function M.agent(conduct)
  local python = vim.env.ACP_TEST_PYTHON or "python3"
  return { python, "-S", "-E", here .. "/strange_agent.py", conduct }
end

---@param got any
---@param wanted any
---@param what? string
function M.same(got, wanted, what)
  if not vim.deep_equal(got, wanted) then
    error(
      ("%sgot %s\nwanted %s"):format(what and what .. ": " or "", vim.inspect(got), vim.inspect(wanted)),
      2
    )
  end
end

---@param text string?
---@param part string
function M.has(text, part)
  if not (text or ""):find(part, 1, true) then
    error(("%s\nhas no %s"):format(tostring(text), part), 2)
  end
end

--- Waits until something is true; what it gives.
---@param condition fun(): any
---@param what? string
---@param limit? integer milliseconds
function M.wait(condition, what, limit)
  local result
  vim.wait(limit or 8000, function()
    result = condition()
    return result
  end, 5)
  if not result then
    error("never came: " .. (what or "what was waited for"), 2)
  end
  return result
end

--- A new folder, its symlinks followed.
---@return string
function M.folder()
  local folder = vim.fn.tempname()
  vim.fn.mkdir(folder, "p")
  return vim.uv.fs_realpath(folder)
end

---@param path string
---@param text string
function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

---@param path string
---@return string?
function M.read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

--- What was told by `vim.notify` since.
---@type string[]
M.told = {}
vim.notify = function(text)
  table.insert(M.told, text)
end

--- What `vim.ui.select` and `vim.ui.input` answer: the choices that start with these words, in order.
---@type (string|false)[]
M.answers = {}
---@type { prompt: string, items: string[] }[]
M.asked = {}

vim.ui.select = function(items, options, chosen)
  local shown = vim.tbl_map(options.format_item, items)
  table.insert(M.asked, { prompt = options.prompt, items = shown })
  local wanted = table.remove(M.answers, 1)
  for index, text in ipairs(shown) do
    if wanted and text:find(wanted, 1, true) then
      return chosen(items[index], index)
    end
  end
  chosen(nil)
end

vim.ui.input = function(options, given)
  table.insert(M.asked, { prompt = options.prompt, items = {} })
  local answer = table.remove(M.answers, 1)
  given(answer or nil)
end

--- A session of the strange agent, in a folder; its client's process is a new one.
---@param conduct? string
---@param settings? table
---@return acp_agent.Session session
---@return string folder
function M.session(conduct, settings)
  require("acp_agent.client").stop_all()
  M.told, M.answers, M.asked = {}, {}, {}
  local all = vim.tbl_deep_extend("force", {
    agents = { strange = { command = M.agent(conduct) } },
    agent = "strange",
    chat = { render_interval = 1 },
  }, settings or {})
  M.same(require("acp_agent").setup(all), true)
  local folder = M.folder()
  local opened, problem
  require("acp_agent.client").get("strange", function(why, client)
    problem = why
    if client then
      require("acp_agent.sessions").create(client, folder, function(reason, session)
        problem, opened = reason, session
      end)
    end
  end)
  M.wait(function()
    return opened or problem
  end, "a session")
  assert(opened, problem)
  return opened, folder
end

--- All text of a session's transcript, as it is now.
---@param session acp_agent.Session
---@return string
function M.text(session)
  session.transcript:flush(function() end)
  return table.concat(session.transcript:lines(), "\n")
end

--- Says something, and does not wait for what comes of it.
---@param session acp_agent.Session
---@param text string
---@param blocks? table[]
function M.say(session, text, blocks)
  M.same(session:submit(text, blocks or { { type = "text", text = text } }), nil)
end

--- Waits for a permission that is asked for.
---@param session acp_agent.Session
---@return acp_agent.Ask
function M.question(session)
  return M.wait(function()
    return session.asks[1]
  end, "a question")
end

--- Waits for the end of the turn.
---@param session acp_agent.Session
function M.over(session)
  M.wait(function()
    return not session.turn
  end, "the end of the turn")
end

--- Runs a turn to its end.
---@param session acp_agent.Session
---@param text string
---@param blocks? table[]
function M.turn(session, text, blocks)
  M.say(session, text, blocks)
  M.over(session)
end

return M
