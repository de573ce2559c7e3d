local it = ...
local t = require("helpers")
local ansi = require("acp_agent.ansi")
local inert = require("acp_agent.inert")
local json = require("acp_agent.json")
local utf8 = require("acp_agent.utf8")

it("null and absent differ where the protocol needs it, and an empty object stays one", function()
  local _, value = json.decode('{"a":null,"o":{},"l":[],"n":1,"s":"x","b":false}')
  t.same({ json.is_null(value, "a"), json.is_null(value, "z") }, { true, false })
  t.same({ json.string(value, "a"), json.string(value, "n"), json.string(value, "s") }, { nil, nil, "x" })
  t.same(json.boolean(value, "b"), false)
  t.same(json.objects(value, "o"), nil)
  t.same(json.objects(value, "l"), {})
  t.same(json.encode({ o = value.o, l = value.l }):find('"o":{}', 1, true) ~= nil, true)
  t.same(
    { json.offers(value, "o"), json.offers(value, "a"), json.offers(value, "b") },
    { true, false, false }
  )
end)

it("values of a wrong type are as good as absent", function()
  for _, broken in ipairs({ 1, "text", true, vim.NIL, {} }) do
    t.same(
      { json.string(broken, "a"), json.objects(broken, "a"), json.offers(broken, "a", "b") },
      { nil, nil, false }
    )
  end
  t.same(json.objects({ a = { 1, { x = 1 }, "s" } }, "a"), { { x = 1 } })
end)

it("a lone surrogate is replaced and the message is read", function()
  local ok, value = json.decode([[{"a":"x\ud800y \ud83d\ude00 \\ud800"}]])
  t.same({ ok, value.a }, { true, "x\239\191\189y 😀 \\ud800" })
end)

it("what is written is valid UTF-8 whatever a buffer holds", function()
  t.same(json.encode({ a = "x\255\254é" }), '{"a":"x\239\191\189\239\191\189é"}')
  t.same(utf8.first_invalid("é😀\226\130"), 7)
end)

it("text is cut between characters only", function()
  t.same({ utf8.head("aéé", 4), utf8.tail("ééa", 4), utf8.tail("ééa", 2) }, { "aé", "éa", "a" })
end)

it("control characters are drawn, and those that reorder a line are named", function()
  t.same(inert.text("a\27[2J\0b\127\tc\r\nd\re"), "a␛[2J␀b␡\tc\nd␍e")
  t.same(inert.text("\226\128\174gnp.exe\194\155"), "<U+202E>gnp.exe<U+009B>")
  t.same(inert.line("one\ntwo\tthree"), "one two three")
end)

it("nothing in a statusline is expanded", function()
  t.same(inert.statusline("%{system('x')} 100%"), "%%{system('x')} 100%%")
  local shown = vim.api.nvim_eval_statusline(inert.statusline("%{1+1}%#Error#x%="), {}).str
  t.same(shown, "%{1+1}%#Error#x%=")
end)

it("escape sequences of a command are taken out, wherever pieces are cut", function()
  local text = "\27[1;31mred\27[0m \27]0;title\7plain\27]8;;http://x\27\\link\27(B é\r\n50%\r100%\n"
  local wanted = "red plainlink é\n100%\n"
  for cut = 1, #text do
    local output = ansi.output()
    output:add(text:sub(1, cut))
    output:shown()
    output:add(text:sub(cut + 1))
    t.same(output:shown(), wanted, "cut at " .. cut)
  end
end)

it("a long output keeps its end", function()
  local output = ansi.output(10)
  output:add("0123456789abcé")
  t.same({ output:shown(), output.truncated }, { "56789abcé", true })
  for _ = 1, 1000 do
    output:add("more\n") -- nobody looks at it meanwhile
    assert(output.waiting <= 25)
  end
  t.same(output:shown(), "more\nmore\n")
end)
