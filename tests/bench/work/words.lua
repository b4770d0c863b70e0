-- Strings, tables and closures: counts made-up words, then sorts and joins them.
local state = 42
local function random(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n + 1
end
local letters = {}
for i = 1, 26 do letters[i] = string.char(96 + i) end

local function word()
    local parts = {}
    for i = 1, 2 + random(4) do parts[i] = letters[random(26)] end
    return table.concat(parts)
end

local total = 0
for round = 1, 8 do
    local counts = {}
    for _ = 1, 100000 do
        local w = word()
        local entry = counts[w] or { word = w, count = 0 }
        entry.count = entry.count + 1
        counts[w] = entry
    end
    local list = {}
    for _, entry in pairs(counts) do list[#list + 1] = entry end
    table.sort(list, function(a, b) return a.count > b.count or a.count == b.count and a.word < b.word end)
    total = total + #list
end
print(total)
