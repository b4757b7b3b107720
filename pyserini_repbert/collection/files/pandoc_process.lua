-- The process that reads files with pandoc; `pandoc_documents.py` starts it.
--
-- It reads a line of JSON for each file, {"format": …} with {"text": …} or {"path": …}, and answers
-- with one: {"title", "text"}, whose text is HTML, or {"problem"}. An empty list of files makes
-- pandoc read in its sandbox: what a file names to be included is not there.

io.stdout:setvbuf('line')

local function content(question)
  if question.text then
    return question.text
  end
  local file = assert(io.open(question.path, 'rb'))
  local bytes = file:read('a')
  file:close()
  return bytes
end

local function answer(question)
  local document = pandoc.read(content(question), question.format, {}, {})
  local title = document.meta.title
  return {
    title = title and pandoc.utils.stringify(title) or '',
    text = pandoc.write(document, 'html'),
  }
end

io.stdout:write('{"ready":true}\n')
for line in io.lines() do
  local is_read, given = pcall(answer, pandoc.json.decode(line, false))
  if not is_read then
    given = { problem = tostring(given) }
  end
  io.stdout:write(pandoc.json.encode(given), '\n')
end
