-- Wireshark dissector for Anabranch's wire format, version 0 (docs/spec/wire-0.md).
--
-- Copy this file into Wireshark's personal Lua plugins (Help, About, Folders), or name it on the command line:
--   tshark -X lua_script:anabranch.lua -r capture.pcapng
--
-- A connection over a network is encrypted, packet numbers included; only the kinds of packets, connection ids and the
-- layout of the handshake can be seen. Set the preference "Key log file" (-o anabranch.keylog_file:FILE) to a file that one
-- of the ends wrote with `--key-log FILE`, and packets are decrypted, which takes some milliseconds each. Packets of
-- simulations (`anabranch sim run --pcapng`) are in clear: set "Packets are in clear" (-o anabranch.clear:TRUE).

local anabranch = Proto("anabranch", "Anabranch")

anabranch.prefs.ports = Pref.range("UDP ports", "4433", "Ports of endpoints; handshakes are found on all", 65535)
anabranch.prefs.clear = Pref.bool("Packets are in clear", false, "Simulated packets: headers unmasked, frames not encrypted")

anabranch.prefs.keylog_file = Pref.string("Key log file", "", "Written by an end of the connection: --key-log FILE")

local HEADER, TAG = 10, 16

local fields = {}

local function field(name, kind, title, base, values)
  fields[name] = ProtoField[kind]("anabranch." .. name, title, base, values)
end

local kinds = { [1] = "Initiation", [2] = "Response", [3] = "Cookie reply", [64] = "Data" }
field("kind", "uint8", "Packet", base.HEX, kinds)
field("version", "uint8", "Version")
field("reserved", "bytes", "Reserved")
field("sender", "uint32", "Sender id", base.HEX)
field("connection", "uint32", "Connection id", base.HEX)
field("ephemeral", "bytes", "Ephemeral key")
field("static", "bytes", "Static key, sealed")
field("payload", "bytes", "Payload, sealed")
field("mac1", "bytes", "mac1")
field("mac2", "bytes", "mac2")
field("nonce", "bytes", "Nonce")
field("cookie", "bytes", "Cookie, sealed")
field("masked", "bytes", "Path and packet number, masked")
field("epoch", "uint8", "Key epoch")
field("path", "uint8", "Path id, low 8 bits")
field("number", "uint32", "Packet number, low 32 bits")
field("sealed", "bytes", "Frames, encrypted")
field("tag", "bytes", "Tag")
field("frame", "uint8", "Frame", base.HEX)
field("packet", "none", "Packet of a datagram that holds several")

-- Fields of frames. A number is a field of that many bytes; "v" is a varint; "n" is a varint with the length of the bytes
-- that follow; "rest" is the rest of the packet.
local frames = {
  [0x01] = { "PING" },
  [0x03] = { "ACK_FLOOR", { "about", "v" }, { "floor", "v" } },
  [0x05] = { "SYMBOL", { "symbol", "v" }, { "above_floor", "v" }, { "content", "n" } },
  [0x06] = { "SYMBOL to the end", { "symbol", "v" }, { "above_floor", "v" }, { "content", "rest" } },
  [0x07] = { "REPAIR", { "first", "v" }, { "above_floor", "v" }, { "count", "v" }, { "key", "v" }, { "content", "n" } },
  [0x08] = { "REPAIR to the end", { "first", "v" }, { "above_floor", "v" }, { "count", "v" }, { "key", "v" },
    { "content", "rest" } },
  [0x09] = { "ABANDON", { "first", "v" }, { "count", "v" } },
  [0x0a] = { "MAX_DATA", { "limit", "v" } },
  [0x0b] = { "MAX_STREAM_DATA", { "stream", "v" }, { "limit", "v" } },
  [0x0c] = { "MAX_SYMBOLS", { "limit", "v" } },
  [0x0d] = { "MAX_STREAMS", { "count", "v" } },
  [0x0e] = { "PATH_CHALLENGE", { "data", 8 } },
  [0x0f] = { "PATH_RESPONSE", { "data", 8 } },
  [0x10] = { "PATH_STATUS", { "about", "v" }, { "sequence", "v" }, { "status", "v" } },
  [0x11] = { "PATH_ABANDON", { "about", "v" }, { "code", "v" } },
  [0x12] = { "RESET_STREAM", { "stream", "v" }, { "code", "v" }, { "final_size", "v" } },
  [0x13] = { "STOP_SENDING", { "stream", "v" }, { "code", "v" } },
  [0x14] = { "CLOSE", { "code", "v" }, { "by_application", "v" }, { "reason", "n" } },
  [0x16] = { "REKEY", { "to_epoch", "v" }, { "data", 48 } },
  [0x17] = { "NEW_CONNECTION_ID", { "about", "v" }, { "data", 4 } },
  [0x20] = { "STREAM", { "stream", "v" }, { "offset", "v" }, { "content", "n" } },
  [0x21] = { "STREAM, final", { "stream", "v" }, { "offset", "v" }, { "content", "n" } },
  [0x22] = { "DATAGRAM", { "content", "n" } },
}
frames[0x18] = { "SYMBOL, last of its block", frames[0x05][2], frames[0x05][3], frames[0x05][4] }
frames[0x19] = { "SYMBOL to the end, last of its block", frames[0x06][2], frames[0x06][3], frames[0x06][4] }

local titles = {
  about = "Path", floor = "Floor", symbol = "Symbol", above_floor = "Above the floor", first = "First symbol",
  count = "Count", key = "Key", limit = "Limit", stream = "Stream", offset = "Offset", sequence = "Sequence",
  status = "Status", code = "Code", final_size = "Final size", by_application = "By the application",
  to_epoch = "Epoch", largest = "Largest", delay = "Delay, µs", ect0 = "ECT(0)", ect1 = "ECT(1)", ce = "CE",
  ranges = "Ranges", first_range = "First range", gap = "Gap", range = "Range", entries = "Entries",
  missing = "Symbols missing", from_first = "Offset of the block",
}
for name, title in pairs(titles) do
  field(name, "uint64", title)
end
field("received_at", "uint32", "Received at, µs")
field("data", "bytes", "Data")
field("content", "bytes", "Content")
field("reason", "string", "Reason")
field("family", "uint8", "Family")
field("port", "uint16", "Port")
anabranch.fields = fields

local malformed = ProtoExpert.new("anabranch.malformed", "A frame does not parse", expert.group.MALFORMED,
  expert.severity.ERROR)
anabranch.experts = { malformed }

-- A position in a range of bytes; it stops at their end.
local Cursor = {}
Cursor.__index = Cursor

local function cursor(range)
  return setmetatable({ range = range, at = 0, left = range:len() }, Cursor)
end

function Cursor:take(length)
  if length > self.left then
    error("truncated", 0)
  end
  local at = self.at
  self.at, self.left = at + length, self.left - length
  if length == 0 then
    return nil
  end
  return self.range:range(at, length)
end

-- Adds a varint to a tree. Returns its value as a number, which is exact below 2^53.
function Cursor:varint(tree, name)
  if self.left == 0 then
    error("truncated", 0)
  end
  local top = math.floor(self.range:range(self.at, 1):uint() / 64)
  local length = 2 ^ top
  local part = self:take(length)
  -- The two highest bits give the length. Numbers hold 53 bits, so the upper half is kept apart.
  local high, low = 0, part:range(0, 1):uint() % 64
  if length == 8 then
    high, low = part:range(0, 4):uint() % 2 ^ 30, part:range(4, 4):uint()
  else
    for i = 1, length - 1 do
      low = low * 256 + part:range(i, 1):uint()
    end
  end
  tree:add(fields[name], part, UInt64.new(low, high))
  return high * 2 ^ 32 + low
end

local function ack(at, tree)
  for _, name in ipairs({ "about", "largest" }) do
    at:varint(tree, name)
  end
  tree:add(fields.received_at, at:take(4))
  for _, name in ipairs({ "delay", "ect0", "ect1", "ce" }) do
    at:varint(tree, name)
  end
  local count = at:varint(tree, "ranges")
  at:varint(tree, "first_range")
  for _ = 1, count do
    at:varint(tree, "gap")
    at:varint(tree, "range")
  end
end

local function rank(at, tree)
  at:varint(tree, "first")
  for _ = 1, at:varint(tree, "entries") do
    at:varint(tree, "from_first")
    at:varint(tree, "missing")
  end
end

local function address(at, tree)
  local family = at:take(1)
  tree:add(fields.family, family)
  local length = family:uint() == 4 and 4 or 16
  tree:add(fields.data, at:take(length))
  tree:add(fields.port, at:take(2))
end

local special = { [0x02] = { "ACK", ack }, [0x04] = { "RANK", rank }, [0x15] = { "ADD_ADDRESS", address } }

local all, opened

local function content(at, tree, frame, kind)
  local length = kind == "rest" and at.left or kind
  if kind == "n" then
    length = at:varint(tree, "count")
  end
  local bytes = at:take(length)
  if bytes == nil then
    return
  end
  if frame == 0x14 then
    tree:add(fields.reason, bytes)
  elseif kind == "n" or kind == "rest" then
    local inner = tree:add(fields.content, bytes)
    -- Source symbols hold STREAM and DATAGRAM frames. Repairs cannot be shown.
    if frame == 0x05 or frame == 0x06 or frame == 0x18 or frame == 0x19 then
      all(cursor(bytes), inner, {})
    end
  else
    tree:add(fields.data, bytes)
  end
end

-- Adds a frame to the tree.
local function one(at, tree, names)
  local start = at.at
  local first = at:take(1)
  local frame = first:uint()
  if frame == 0 then
    local run = 1
    while at.left > 0 and at.range:range(at.at, 1):uint() == 0 do
      at:take(1)
      run = run + 1
    end
    tree:add(fields.frame, at.range:range(start, 1), 0):set_text("PADDING, " .. run .. " bytes")
    return
  end
  local known, apart = frames[frame], special[frame]
  if known == nil and apart == nil then
    error("unknown frame type " .. frame, 0)
  end
  local name = (known or apart)[1]
  names[#names + 1] = name
  local sub = tree:add(fields.frame, first)
  sub:set_text(name)
  if apart then
    apart[2](at, sub)
  else
    for i = 2, #known do
      local of, kind = known[i][1], known[i][2]
      if kind == "v" then
        at:varint(sub, of)
      else
        content(at, sub, frame, kind)
      end
    end
  end
  sub:set_len(at.at - start)
end

-- Adds the frames up to the end of the bytes, or up to one that does not parse.
function all(at, tree, names)
  while at.left > 0 do
    local fine, why = pcall(one, at, tree, names)
    if not fine then
      tree:add_proto_expert_info(malformed, "A frame does not parse: " .. tostring(why))
      names[#names + 1] = "malformed"
      return names
    end
  end
  return names
end

-- Decryption: AES-256-GCM (FIPS 197, NIST SP 800-38D) and header protection. The Lua of Wireshark 4.0 has no ciphers.

local band, bxor, lshift, rshift = bit.band, bit.bxor, bit.lshift, bit.rshift

-- Conversions of four bytes to 32 bits, and of 32 bits to four bytes.
local function word(a, b, c, d)
  return bxor(lshift(a, 24), lshift(b, 16), lshift(c, 8), d)
end

local function bytes_of(a)
  return rshift(a, 24), band(rshift(a, 16), 255), band(rshift(a, 8), 255), band(a, 255)
end

-- The S-box, and for each byte a column of SubBytes with MixColumns, rotated by 0 to 3 bytes.
local sbox, columns = {}, { {}, {}, {}, {} }
do
  local function doubled(a)
    return band(a, 128) == 0 and 2 * a or bxor(2 * a, 0x11b)
  end
  -- Powers of 3, which is a generator of the field.
  local power, log, a = {}, {}, 1
  for i = 0, 254 do
    power[i], log[a] = a, i
    a = bxor(a, doubled(a))
  end
  for i = 0, 255 do
    local inverse = i == 0 and 0 or power[(255 - log[i]) % 255]
    local s = bxor(inverse, 0x63)
    for turn = 1, 4 do
      s = bxor(s, band(bxor(lshift(inverse, turn), rshift(inverse, 8 - turn)), 255))
    end
    sbox[i] = s
    local twice = doubled(s)
    local column = { twice, s, s, bxor(twice, s) }
    for turn = 1, 4 do
      columns[turn][i] = word(column[1], column[2], column[3], column[4])
      table.insert(column, 1, table.remove(column))
    end
  end
end

local function substituted(a)
  local p, q, r, s = bytes_of(a)
  return word(sbox[p], sbox[q], sbox[r], sbox[s])
end

-- The round keys of AES-256, of 32 bytes.
local function round_keys(key)
  local w, constant = {}, 1
  for i = 1, 8 do
    w[i] = word(key:byte(4 * i - 3, 4 * i))
  end
  for i = 9, 60 do
    local last = w[i - 1]
    if i % 8 == 1 then
      last = bxor(substituted(bit.rol(last, 8)), lshift(constant, 24))
      constant = 2 * constant
    elseif i % 8 == 5 then
      last = substituted(last)
    end
    w[i] = bxor(w[i - 8], last)
  end
  return w
end

-- Encrypts a block of four words.
local function encrypt(w, a, b, c, d)
  local t1, t2, t3, t4 = columns[1], columns[2], columns[3], columns[4]
  a, b, c, d = bxor(a, w[1]), bxor(b, w[2]), bxor(c, w[3]), bxor(d, w[4])
  for i = 5, 53, 4 do
    local a1, a2, a3, a4 = bytes_of(a)
    local b1, b2, b3, b4 = bytes_of(b)
    local c1, c2, c3, c4 = bytes_of(c)
    local d1, d2, d3, d4 = bytes_of(d)
    a = bxor(t1[a1], t2[b2], t3[c3], t4[d4], w[i])
    b = bxor(t1[b1], t2[c2], t3[d3], t4[a4], w[i + 1])
    c = bxor(t1[c1], t2[d2], t3[a3], t4[b4], w[i + 2])
    d = bxor(t1[d1], t2[a2], t3[b3], t4[c4], w[i + 3])
  end
  local a1, a2, a3, a4 = bytes_of(a)
  local b1, b2, b3, b4 = bytes_of(b)
  local c1, c2, c3, c4 = bytes_of(c)
  local d1, d2, d3, d4 = bytes_of(d)
  return bxor(word(sbox[a1], sbox[b2], sbox[c3], sbox[d4]), w[57]),
    bxor(word(sbox[b1], sbox[c2], sbox[d3], sbox[a4]), w[58]),
    bxor(word(sbox[c1], sbox[d2], sbox[a3], sbox[b4]), w[59]),
    bxor(word(sbox[d1], sbox[a2], sbox[b3], sbox[c4]), w[60])
end

-- Multiplies by x in the field of GHASH, whose first bit is the constant term.
local function times_x(a, b, c, d)
  local carry = band(d, 1)
  d = bxor(rshift(d, 1), lshift(c, 31))
  c = bxor(rshift(c, 1), lshift(b, 31))
  b = bxor(rshift(b, 1), lshift(a, 31))
  return carry == 0 and rshift(a, 1) or bxor(rshift(a, 1), 0xe1000000), b, c, d
end

-- Reductions of the eight highest powers in a product with x^8.
local reduced = {}
for i = 0, 255 do
  local a, b, c, d = 0, 0, 0, i
  for _ = 1, 8 do
    a, b, c, d = times_x(a, b, c, d)
  end
  reduced[i] = a
end

-- A packet key: its round keys, and the products of GHASH's key with each byte.
local function packet_key(key)
  local w = round_keys(key)
  local product, a, b, c, d = { [0] = { 0, 0, 0, 0 } }, encrypt(w, 0, 0, 0, 0)
  local high = 128
  while high >= 1 do
    product[high] = { a, b, c, d }
    a, b, c, d = times_x(a, b, c, d)
    high = high / 2
  end
  for power = 1, 7 do
    local p = product[2 ^ power]
    for low = 1, 2 ^ power - 1 do
      local q = product[low]
      product[2 ^ power + low] = { bxor(p[1], q[1]), bxor(p[2], q[2]), bxor(p[3], q[3]), bxor(p[4], q[4]) }
    end
  end
  return { words = w, product = product }
end

-- Multiplies by GHASH's key.
local function times_key(product, a, b, c, d)
  local x = { bytes_of(a) }
  x[5], x[6], x[7], x[8] = bytes_of(b)
  x[9], x[10], x[11], x[12] = bytes_of(c)
  x[13], x[14], x[15], x[16] = bytes_of(d)
  local p = product[x[16]]
  a, b, c, d = p[1], p[2], p[3], p[4]
  for i = 15, 1, -1 do
    p = product[x[i]]
    local r = reduced[band(d, 255)]
    d = bxor(rshift(d, 8), lshift(c, 24), p[4])
    c = bxor(rshift(c, 8), lshift(b, 24), p[3])
    b = bxor(rshift(b, 8), lshift(a, 24), p[2])
    a = bxor(rshift(a, 8), r, p[1])
  end
  return a, b, c, d
end

-- The words of block `i` of the bytes, counted from 0; zeros follow the end.
local function block(bytes, i)
  local part = bytes:sub(16 * i + 1, 16 * i + 16)
  if #part < 16 then
    part = part .. ("\0"):rep(16 - #part)
  end
  local a, b, c, d, e, f, g, h, k, l, m, n, o, p, q, r = part:byte(1, 16)
  return word(a, b, c, d), word(e, f, g, h), word(k, l, m, n), word(o, p, q, r)
end

-- Decrypts the bytes after a header; nil if the tag does not match them and the header. The nonce is three words.
local function decrypt(key, nonce, header, sealed, tag)
  local w, product = key.words, key.product
  local n1, n2, n3 = nonce[1], nonce[2], nonce[3]
  local z1, z2, z3, z4 = times_key(product, block(header, 0))
  local plain = {}
  for i = 0, math.floor((#sealed + 15) / 16) - 1 do
    local s1, s2, s3, s4 = block(sealed, i)
    local k1, k2, k3, k4 = encrypt(w, n1, n2, n3, i + 2)
    local a, b, c, d = bytes_of(bxor(s1, k1))
    local e, f, g, h = bytes_of(bxor(s2, k2))
    local k, l, m, n = bytes_of(bxor(s3, k3))
    plain[i + 1] = string.char(a, b, c, d, e, f, g, h, k, l, m, n, bytes_of(bxor(s4, k4)))
    z1, z2, z3, z4 = times_key(product, bxor(z1, s1), bxor(z2, s2), bxor(z3, s3), bxor(z4, s4))
  end
  z1, z2, z3, z4 = times_key(product, z1, bxor(z2, 8 * #header), z3, bxor(z4, 8 * #sealed))
  local k1, k2, k3, k4 = encrypt(w, n1, n2, n3, 1)
  local t1, t2, t3, t4 = block(tag, 0)
  if bxor(z1, k1, t1) ~= 0 or bxor(z2, k2, t2) ~= 0 or bxor(z3, k3, t3) ~= 0 or bxor(z4, k4, t4) ~= 0 then
    return nil
  end
  return table.concat(plain):sub(1, #sealed)
end

-- Keys of the key log by connection and side: `header`, and the packet keys by epoch.
local keys = { size = -1, sides = {} }
-- The keys for each connection id; the connection of each packet in the capture; the number of packets for each id that
-- could not be decrypted.
local openers, found, failures = {}, {}, {}
-- Number of packets for an unknown id that are tried with every key, until there are new keys.
local MAX_FAILURES = 8

local function forget()
  keys, openers, found, failures = { size = -1, sides = {} }, {}, {}, {}
end

-- Reads the key log if it has grown. Returns whether it has.
local function read_keys()
  local file = anabranch.prefs.keylog_file ~= "" and io.open(anabranch.prefs.keylog_file, "rb")
  if not file then
    return false
  end
  local size = file:seek("end")
  if size == keys.size then
    file:close()
    return false
  end
  file:seek("set")
  local sides = keys.sides
  for line in file:lines() do
    local side, what, connection, key = line:match("^ANABRANCH_(%u+)_([%u%d_]+) (%x+) (%x+)%s*$")
    if side and #key == 64 then
      local of = side .. connection
      sides[of] = sides[of] or { epochs = {} }
      local bytes = key:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
      local epoch = what:match("^PACKET_(%d+)$")
      if what == "HEADER" then
        sides[of].header = round_keys(bytes)
      elseif epoch and not sides[of].epochs[tonumber(epoch)] then
        sides[of].epochs[tonumber(epoch)] = packet_key(bytes)
      end
    end
  end
  file:close()
  keys.size, failures = size, {}
  return true
end

-- The header of a packet without its mask: its bytes, the first byte, the low bits of path and number.
local function unmasked(side, bytes)
  local m1, m2 = encrypt(side.header, block(bytes:sub(-TAG), 0))
  local mask = { bytes_of(m1) }
  mask[5], mask[6] = bytes_of(m2)
  local first = bxor(bytes:byte(1), band(mask[1], 63))
  local path = bxor(bytes:byte(6), mask[2])
  local low = {}
  for i = 1, 4 do
    low[i] = bxor(bytes:byte(6 + i), mask[2 + i])
  end
  local header = string.char(first) .. bytes:sub(2, 5) .. string.char(path, low[1], low[2], low[3], low[4])
  local number = ((low[1] * 256 + low[2]) * 256 + low[3]) * 256 + low[4]
  return { bytes = header, first = first, path = path, number = number }
end

-- The number with these low 32 bits that is nearest to the expected one.
local function expanded(low, expected)
  local number = expected - expected % 2 ^ 32 + low
  if number > expected + 2 ^ 31 and number >= 2 ^ 32 then
    return number - 2 ^ 32
  elseif number < expected - 2 ^ 31 then
    return number + 2 ^ 32
  end
  return number
end

-- Decrypts a packet with the keys of one side.
local function try(side, bytes, expected, paths)
  if not side.header then
    return nil
  end
  local header = unmasked(side, bytes)
  local number = expanded(header.number, expected)
  local sealed, tag = bytes:sub(HEADER + 1, -TAG - 1), bytes:sub(-TAG)
  for epoch, key in pairs(side.epochs) do
    if epoch % 4 == math.floor(header.first / 16) % 4 then
      for _, above in ipairs(paths) do
        local path = header.path + above
        local nonce = { path, math.floor(number / 2 ^ 32), number % 2 ^ 32 }
        local plain = decrypt(key, nonce, header.bytes, sealed, tag)
        if plain then
          return { first = header.first, path = path, number = number }, plain
        end
      end
    end
  end
  return nil
end

-- Paths are numbered from 0, and no number is used twice in a connection; the header has the low eight bits.
local ALL_PATHS = { 0, 256, 512, 768 }

-- Adds the header and the frames of a data packet, if there is a key for it.
function opened(range, at)
  local bytes, id = range:raw(), range:range(1, 4):uint()
  if found[at] then
    local was = found[at]
    return try(was.side, bytes, was.number, { was.above })
  end
  local function open()
    local known = openers[id]
    if known then
      return known.side, try(known.side, bytes, known.expected, { known.above })
    end
    if (failures[id] or 0) >= MAX_FAILURES then
      return nil
    end
    for _, side in pairs(keys.sides) do
      local header, plain = try(side, bytes, 0, ALL_PATHS)
      if plain then
        return side, header, plain
      end
    end
    failures[id] = (failures[id] or 0) + 1
  end
  local side, header, plain = open()
  if not plain and read_keys() then
    side, header, plain = open()
  end
  if plain then
    local above = header.path - header.path % 256
    found[at] = { side = side, number = header.number, above = above }
    local expected = math.max(openers[id] and openers[id].expected or 0, header.number + 1)
    openers[id] = { side = side, expected = expected, above = above }
  end
  return header, plain
end

local function handshake(range, tree, response)
  local at = cursor(range)
  tree:add(fields.kind, at:take(1))
  tree:add(fields.version, at:take(1))
  tree:add(fields.reserved, at:take(2))
  tree:add(response and fields.connection or fields.sender, at:take(4))
  tree:add(fields.ephemeral, at:take(32))
  if not response then
    tree:add(fields.static, at:take(48))
  end
  tree:add(fields.payload, at:take(at.left - 32))
  tree:add(fields.mac1, at:take(16))
  tree:add(fields.mac2, at:take(16))
end

local function cookie(range, tree)
  local at = cursor(range)
  tree:add(fields.kind, at:take(1))
  tree:add(fields.reserved, at:take(3))
  tree:add(fields.connection, at:take(4))
  tree:add(fields.nonce, at:take(24))
  tree:add(fields.cookie, at:take(32))
end

-- Adds a data packet, which `at` identifies in the capture. Returns its text for the list of packets.
local function data(range, tree, at)
  local first = range:range(0, 1)
  tree:add(fields.kind, first, 64)
  tree:add(fields.connection, range:range(1, 4))
  local sealed = range:range(HEADER, range:len() - HEADER - TAG)
  local frames, header = sealed, { first = first:uint(), path = range:range(5, 1):uint(), number = range:range(6, 4):uint() }
  if not anabranch.prefs.clear then
    local plain
    header, plain = opened(range, at)
    frames = plain and ByteArray.new(plain, true):tvb("Decrypted frames"):range()
  end
  local told
  if frames then
    tree:add(fields.epoch, first, math.floor(header.first / 16) % 4)
    tree:add(fields.path, range:range(5, 1), header.path % 256)
    tree:add(fields.number, range:range(6, 4), header.number % 2 ^ 32)
    local names = all(cursor(frames), tree, {})
    told = string.format("path %d, packet %d: %s", header.path, header.number, table.concat(names, ", "))
  else
    tree:add(fields.masked, range:range(5, 5))
    tree:add(fields.sealed, sealed)
    told = string.format("Data for %08x, %d bytes of frames", range:range(1, 4):uint(), sealed:len())
  end
  tree:add(fields.tag, range:range(range:len() - TAG, TAG))
  return told
end

-- The length of the data packets in a datagram that the system split or joined outside the capture (UDP segmentation and
-- receive offload): all packets but the last have the same, and the same connection id.
local function segment(range)
  local bytes = range:raw()
  local id = bytes:sub(2, 5)
  local next = bytes:find(id, HEADER + TAG + 2, true)
  while next do
    local first = bytes:byte(next - 1)
    if first >= 64 and first < 128 then
      return next - 2
    end
    next = bytes:find(id, next + 1, true)
  end
  return range:len()
end

-- The kind of a datagram; nil if it is not of this protocol.
local function kind_of(range)
  local length = range:len()
  if length < HEADER + TAG + 1 then
    return nil
  end
  local first = range:range(0, 1):uint()
  if first >= 64 and first < 128 then
    return 64
  elseif first == 3 and length == 64 and range:range(1, 3):uint() == 0 then
    return 3
  elseif (first == 1 or first == 2) and length >= 88 and range:range(1, 3):uint() == 0 then
    return first
  end
  return nil
end

function anabranch.dissector(tvb, info, root)
  local range = tvb:range()
  local kind = kind_of(range)
  if kind == nil then
    return 0
  end
  info.cols.protocol = "Anabranch"
  local tree = root:add(anabranch, range)
  tree:append_text(", " .. kinds[kind])
  if kind == 64 then
    local length, told = segment(range), {}
    for from = 0, range:len() - 1, length do
      local part = range:range(from, math.min(length, range:len() - from))
      local within = length < range:len() and tree:add(fields.packet, part) or tree
      if part:len() > HEADER + TAG then
        told[#told + 1] = data(part, within, info.number .. ":" .. from)
      end
    end
    info.cols.info = table.concat(told, " | ")
    return tvb:len()
  end
  info.cols.info = kinds[kind]
  if kind == 3 then
    cookie(range, tree)
  elseif kind == 2 or range:len() >= 136 then
    handshake(range, tree, kind == 2)
  end
  return tvb:len()
end

-- After a handshake, its conversation is dissected as this protocol, whatever the port.
anabranch:register_heuristic("udp", function(tvb, info, root)
  local kind = kind_of(tvb:range())
  if kind ~= 1 and kind ~= 2 and kind ~= 3 then
    return false
  end
  info.conversation = anabranch
  anabranch.dissector(tvb, info, root)
  return true
end)

local bound = ""
local function bind()
  local udp = DissectorTable.get("udp.port")
  if bound ~= "" then
    udp:remove(bound, anabranch)
  end
  bound = anabranch.prefs.ports
  if bound ~= "" then
    udp:add(bound, anabranch)
  end
end

function anabranch.prefs_changed()
  forget()
  bind()
end

-- Called for each capture, and when a capture is read again.
function anabranch.init()
  forget()
end

bind()
