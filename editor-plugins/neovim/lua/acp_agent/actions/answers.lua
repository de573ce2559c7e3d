--- Deciding what the agent may do: permissions, and diffs hunk by hunk.

local target = require("acp_agent.actions.target")
local ui = require("acp_agent.ui")

local function answer(action)
  return function()
    target.with_ask(function(ask)
      ask:choose_kind(require("acp_agent.permissions").KINDS[action])
    end)
  end
end

---@type table<string, acp_agent.Action>
local M = {}

M.allow = { desc = "allow the request once", run = answer("allow") }

M.allow_always = { desc = "allow this kind of request always", run = answer("allow_always") }

M.reject = { desc = "reject the request", run = answer("reject") }

M.reject_always = { desc = "reject this kind of request always", run = answer("reject_always") }

M.answer = {
  desc = "choose an answer to the request",
  run = function()
    if require("acp_agent.attention").answer() then
      return
    end
    target.with_ask(function(ask)
      ask:select()
    end)
  end,
}

M.review = {
  desc = "review the requested diff, or the one under the cursor, hunk by hunk",
  run = function()
    local chat = target.chat()
    local entry = chat and chat:under_cursor()
    local ask = target.ask()
    local made = entry and entry.kind == "tool" and #entry.diffs > 0 and entry
    if ask and ask:has_diff() and not (made and made.id ~= ask.call) then
      return require("acp_agent.review").of_ask(ask)
    elseif made and chat then
      return require("acp_agent.review").of_edit(chat.session, made.diffs)
    end
    ui.notify("no diff here", "warning")
  end,
}

M.accept_hunk = {
  desc = "accept the hunk at the cursor",
  run = function()
    target.with_review(function(review)
      review:decide(true)
    end)
  end,
}

M.reject_hunk = {
  desc = "reject the hunk at the cursor",
  run = function()
    target.with_review(function(review)
      review:decide(false)
    end)
  end,
}

M.accept_all = {
  desc = "accept all open hunks",
  run = function()
    target.with_review(function(review)
      review:decide_all(true)
    end)
  end,
}

M.reject_all = {
  desc = "reject all open hunks",
  run = function()
    target.with_review(function(review)
      review:decide_all(false)
    end)
  end,
}

M.next_hunk = {
  desc = "go to the next hunk",
  run = function()
    target.with_review(function(review)
      review:move(1)
    end)
  end,
}

M.previous_hunk = {
  desc = "go to the previous hunk",
  run = function()
    target.with_review(function(review)
      review:move(-1)
    end)
  end,
}

M.close_review = {
  desc = "leave the review; the request stays open",
  run = function()
    target.with_review(function(review)
      review:close()
    end)
  end,
}

return M
