std = "luajit"
globals = { "vim" }
self = false -- methods that need nothing of what they belong to
max_line_length = false -- the formatter sees to that
exclude_files = { "**/node_modules/**" }
