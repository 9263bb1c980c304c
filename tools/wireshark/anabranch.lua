-- Wireshark dissector for Anabranch's wire format, version 0 (docs/spec/wire-0.md).
--
-- Copy it into Wireshark's personal Lua plugins (Help, About, Folders), or name it once:
--   tshark -X lua_script:anabranch.lua -r capture.pcapng
--
-- Of a connection over a network everything but the kind of a packet, connection ids and the handshake's layout is
-- encrypted, packet numbers too. Packets of simulations are not: `anabranch sim run --pcapng`, then set the preference
-- "Packets are in clear" (-o anabranch.clear:TRUE).

local anabranch = Proto("anabranch", "Anabranch")

anabranch.prefs.ports = Pref.range("UDP ports", "4433", "Ports of endpoints; handshakes are found on all", 65535)
anabranch.prefs.clear = Pref.bool("Packets are in clear", false, "Simulated packets: headers unmasked, frames not encrypted")

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
field("bytes", "bytes", "Bytes")

-- Fields of frames. A number is so many bytes; "v" a varint; "n" a varint that is the length of the bytes that follow;
-- "rest" what is left of the packet.
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

-- A position in some bytes, which stops at their end.
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

-- Adds a varint to a tree; gives its value as a number, which is exact below 2^53.
function Cursor:varint(tree, name)
  if self.left == 0 then
    error("truncated", 0)
  end
  local top = math.floor(self.range:range(self.at, 1):uint() / 64)
  local length = 2 ^ top
  local part = self:take(length)
  -- The two highest bits say how long it is. A number holds 53 bits, so that the upper half is kept apart.
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

local all

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
    -- Source symbols hold STREAM and DATAGRAM frames; of repairs nothing is to be seen.
    if frame == 0x05 or frame == 0x06 or frame == 0x18 or frame == 0x19 then
      all(cursor(bytes), inner, {})
    end
  else
    tree:add(fields.data, bytes)
  end
end

-- One frame.
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

-- Frames to the end of the bytes; stops at one that does not parse.
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

local function data(range, tree, info)
  local first = range:range(0, 1)
  tree:add(fields.kind, first, 64)
  tree:add(fields.connection, range:range(1, 4))
  local sealed = range:range(HEADER, range:len() - HEADER - TAG)
  if anabranch.prefs.clear then
    tree:add(fields.epoch, first, math.floor(first:uint() / 16) % 4)
    tree:add(fields.path, range:range(5, 1))
    tree:add(fields.number, range:range(6, 4))
    local names = all(cursor(sealed), tree, {})
    local number, path = range:range(6, 4):uint(), range:range(5, 1):uint()
    info.cols.info = string.format("path %d, packet %d: %s", path, number, table.concat(names, ", "))
  else
    tree:add(fields.masked, range:range(5, 5))
    tree:add(fields.sealed, sealed)
    info.cols.info = string.format("Data for %08x, %d bytes of frames", range:range(1, 4):uint(), sealed:len())
  end
  tree:add(fields.tag, range:range(range:len() - TAG, TAG))
end

-- What a datagram is; nil if it is none of ours.
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
    data(range, tree, info)
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

-- A handshake makes its conversation ours, whatever the port.
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
  bind()
end

bind()
