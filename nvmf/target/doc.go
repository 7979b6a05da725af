// Package target offers disks to NVMe hosts over RDMA: to Linux, by nvme connect -t rdma, over siw or an RNIC, and to
// package nvmf/host.
//
// A Target is one subsystem, with any number of namespaces, each of which is a Backend: memory, a file, or something of
// the program's. It is its own discovery subsystem, too. Each connection is one queue of a host's. A host's first, the
// Admin Queue, makes a controller; others add I/O queues to it.
//
// # The way of a command
//
// A queue has a goroutine that takes completions (run), and one for each command that is under way (request.run). A
// host may have as many of these as the queue has entries; one more ends the connection. What a host writes is fetched
// by RDMA Reads, as many at a time as the connection has room for, and given to the Backend when it is there as a
// whole; what it reads goes out by an RDMA Write and the completion after it. Then the STag is invalidated by the Send
// of the completion, if the host asks for that.
//
// # What a host can do
//
// Nothing of the target's memory is offered to hosts: they send capsules, and all data move by our own Reads and
// Writes. No number of theirs leads outside of what was offered or beyond the end of a disk, and what they can make a
// Target hold is bounded: see Config. Whoever reaches the port can connect, unless Config.Hosts names those who may, by
// a name that anybody can claim: where that is not enough, protect the connections (docs/security.md).
package target
