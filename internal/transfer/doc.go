// Package transfer copies files and directories between hosts: names, sizes and digests go by Sends, bytes by RDMA
// Writes from the sender's buffers into those of the receiver.
//
// A client connects with private data that begin with message.Magic, and begins: it wants to put something into the
// server's directory, or to get something from there. Then one end is the sender and the other the receiver, and it
// does not matter any more who is who:
//
//	sender                                     receiver
//	Offer {File, path, mode, time, size} ---->
//	                                     <---- Answer {OK}
//	                                     <---- Grant {offset, length, memory, digest of what it has}, up to 8
//	RDMA Write of the block              ---->
//	Wrote {offset, length, digest}       ---->
//	                                     <---- Grant of the next block
//	...
//	Done {digest of the digests}         ---->
//	                                     <---- Answer {OK}: it has its name, and is on disk
//	Offer of the next
//	...
//	End                                  ---->
//	                                     <---- Answer {OK}
//
// The receiver compares the digest of each block with that of the sender before it writes the block to a file with a
// name of its own. That file gets its name when all blocks are there. When a transfer is cut the file stays as it is,
// and one that resumes it has the sender compare the blocks that are there, so that nobody has to remember how far it
// has come: see docs/cp.md.
//
// Files are read into registered memory, and written from there, and not mapped: memory of a file that another program
// cuts short is a fault of this one.
package transfer
