-- A post dissector for tshark: DDP segments over SCTP, read by its dissector of DDP and RDMAP.
-- tshark -X lua_script:ddp.lua -d udp.port==7175,sctp -r iwarp-udp.pcap
local ddp = Dissector.get("iwarp_ddp_rdmap")
local p = Proto("ddp_sctp", "DDP over SCTP")
local ssn = ProtoField.uint16("ddp_sctp.ssn", "DDP-SSN")
p.fields = { ssn }
function p.dissector(b, pinfo, tree)
  tree:add(ssn, b(0, 2))
  ddp:call(b(2):tvb(), pinfo, tree)
end
DissectorTable.get("sctp.ppi"):add(16, p)
