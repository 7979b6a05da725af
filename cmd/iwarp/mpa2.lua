-- What Wireshark does not read of MPA revision 2 (RFC 6581): IRD, ORD and RTR in startup frames, and the codes of
-- Terminates by which their negotiation fails. iwarp extcap --install puts this where Wireshark looks for Lua.

local mpa2 = Proto("iwarp_mpa2", "MPA revision 2")

local flags = {
	{ field = ProtoField.bool("iwarp_mpa2.a", "A: peer-to-peer model", 16, nil, 0x8000), at = 0 },
	{ field = ProtoField.bool("iwarp_mpa2.b", "B: RTR by a Send", 16, nil, 0x4000), at = 0 },
	{ field = ProtoField.uint16("iwarp_mpa2.ird", "IRD", base.DEC, { [0x3fff] = "no negotiation" }, 0x3fff), at = 0 },
	{ field = ProtoField.bool("iwarp_mpa2.c", "C: RTR by a Write", 16, nil, 0x8000), at = 2 },
	{ field = ProtoField.bool("iwarp_mpa2.d", "D: RTR by a Read", 16, nil, 0x4000), at = 2 },
	{ field = ProtoField.uint16("iwarp_mpa2.ord", "ORD", base.DEC, { [0x3fff] = "no negotiation" }, 0x3fff), at = 2 },
}
local failure = ProtoField.string("iwarp_mpa2.error", "MPA error")

mpa2.fields = { failure }
for _, flag in ipairs(flags) do
	table.insert(mpa2.fields, flag.field)
end

local reserved, data = Field.new("iwarp_mpa.res"), Field.new("iwarp_mpa.privatedata")
local code = Field.new("iwarp_rdma.term_errcode_llp")

local errors = {
	[5] = "local catastrophic error",
	[6] = "insufficient IRD resources",
	[7] = "no matching RTR option",
}

function mpa2.dissector(_, pinfo, tree)
	local res, private = reserved(), data()
	-- S, the fourth bit of what was reserved, announces four bytes in front of the private data
	if res and private and math.floor(res.value / 16) % 2 == 1 and private.len >= 4 then
		local both = private.range(0, 4)
		local ird, ord = both(0, 2):uint() % 0x4000, both(2, 2):uint() % 0x4000
		local sub = tree:add(mpa2, both, string.format("MPA revision 2: IRD %d, ORD %d", ird, ord))
		for _, flag in ipairs(flags) do
			sub:add(flag.field, both(flag.at, 2))
		end
		pinfo.cols.info:append(string.format(" [IRD %d ORD %d]", ird, ord))
	end
	local ended = code()
	if ended and errors[ended.value] then
		tree:add(mpa2, ended.range, "MPA revision 2: " .. errors[ended.value]):add(failure, ended.range, errors[ended.value])
		pinfo.cols.info:append(" [" .. errors[ended.value] .. "]")
	end
end

register_postdissector(mpa2)
