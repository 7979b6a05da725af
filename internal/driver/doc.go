// Package driver moves a connection from RTS to its end. It is the one place where a Machine of the engine meets a
// socket, goroutines, timers and a clock. A Conn is made at RTS, and dropped when its connection has ended: whoever
// still holds it then meets no later connection.
//
// # Goroutines
//
// One goroutine receives as long as there is a connection, or lets a consumer do so (role.go). The goroutine that posts
// also sends, as far as the socket takes it without waiting. If the socket does not, or if posts follow each other so
// quickly that they are better sent together (coalesce.go), a second goroutine runs until everything has gone. The
// receiving goroutine never waits for a sender: what it has to send itself (Read Responses, a Terminate) is queued.
//
// # Locks
//
// Conn.mu guards the Machine and all of a Conn that changes. Every goroutine takes it in one way: it locks, tells the
// Machine what has happened, and ends with Conn.release. That carries out, with the lock released, whatever is due:
// writes to the socket, completions and notices for the Owner, questions to the lower layer. Then it unlocks. So the
// Owner and the lower layer, whose code may be the user's, never run under the lock. One goroutine at a time hands up,
// so that the Owner gets everything in order. A QP's lock comes before that of its Conn.
//
// # Timers
//
// There is one for the engine's deadline, and one for idle peers (watch.go). The bell, by which a consumer that
// receives gives that back, and the timer of wake-up suppression are those of package tcp.
package driver
