// Package host is the host's side of NVMe over RDMA: it connects to a subsystem of a target, such as Linux's nvmet or
// package nvmf/target, and reads and writes its namespaces (NVM Express base specification 2.0; RDMA transport).
//
// Dialer.Dial brings a Controller up, Controller.Namespaces returns what is there, and a Namespace is an io.ReaderAt
// and an io.WriterAt, with Flush, Discard and WriteZeroes. Dialer.Discover asks a discovery controller what there is to
// dial.
//
// # What is done again
//
// A Controller is a connection for each of its queues. When one of them is lost, when a command is not answered for
// Dialer.Timeout, or when the target does what no target may, all of them are ended, and the Controller connects anew,
// as Dialer.Patience says. Commands that were under way are sent again, and calls wait for that. So a write whose
// connection was lost may have been carried out twice, which makes no difference except to somebody who has written to
// the same blocks meanwhile: a target has stopped the work of the old connections before it takes commands from new
// ones. What had completed is not sent again. Where not just the connection was lost, but the target's machine its
// power, what was in its cache is gone, and a Flush on the new connection does not say so: a program that must not lose
// that writes again what it had not flushed when Dialer.Lost told it. The namespaces have to be the same as before, by
// their identifiers, length and blocks: ErrChanged.
//
// A command that failed is sent again too, unless its status says that this is of no use (DNR). Neither happens to a
// command more than five times. All other errors are final.
//
// # Memory
//
// What a call is given is registered for that command alone and for the peer of that connection: for writing if it is a
// read, and for reading if it is a write. The target invalidates it by its answer, or it is invalidated here; either
// way nothing reaches it any more when the call has returned, however that ended.
package host
