// Package iwarp is RDMA over TCP: an iWARP endpoint (MPA, DDP, RDMAP) in user space, without RDMA hardware, kernel
// modules or root. A Queue Pair ([QP]) is one end of a connection with another program that uses this package, Linux's
// siw driver or an RDMA adapter. [Dial], a [Dialer] or a [Listener] makes it, over TCP or SCTP (package iwarpsctp).
//
// # A first message
//
//	d := iwarp.Dialer{QP: iwarp.QPConfig{Receives: iwarp.Receives{Count: 16, Size: 4096}}}
//	qp, err := d.Dial(ctx, "tcp", "server:7174") // check each err
//	defer qp.Close()
//	_, err = qp.Submit(ctx, &iwarp.SendWR{Inline: []byte("hello")})
//	answer, err := qp.Receive(ctx)
//	defer answer.Done() // gives the buffer back
//
// [QP.Messages] is a loop over messages. [QP.Submit] waits for room in the Send Queue, and [Pending.Wait] until the
// request is done. The example FirstSend is a whole program.
//
// # One-sided memory
//
// A Protection Domain ([PD]) registers memory ([MR]). [MR.Region] tells a peer where it is. [QP.At] reads and writes it
// there, without the owner's program. That uses [MR.ReadAt], [MR.WriteAt], [MR.Update] and [MR.Uint64] meanwhile.
//
// # Completions and errors
//
// [QP.Send], [QP.Write], [QP.Read] and [Pending.Wait] return the error of their request. The verbs ([QP.PostSend],
// [QP.PostRecv]) return at once. A completion ([WC]) comes to a Completion Queue ([CQ]) later. [CQ.All] returns its
// error, too. After [CQ.Next] or [CQ.Poll] ask [WC.Err]. Until the completion, the QP owns the memory of the request.
//
// # How connections end
//
// [QP.Close] completes what was posted. Any protocol violation ends the connection with a [TerminateError]. [QP.Err] is
// why it has ended: errors.Is(err, io.EOF) is an orderly end by the peer, [ErrConnectionLost] a lost connection.
//
// # What to read
//
// Begin with [from-sockets.md], or [from-verbs.md] if you know libibverbs. Other [documents] explain settings, endings
// and what may change in new versions. Terms are those of libibverbs and the RFCs (5040 to 5044, 6581, 7306).
//
// [documents]: https://github.com/goiwarp/iwarp/tree/main/docs
// [from-sockets.md]: https://github.com/goiwarp/iwarp/blob/main/docs/from-sockets.md
// [from-verbs.md]: https://github.com/goiwarp/iwarp/blob/main/docs/from-verbs.md
package iwarp
