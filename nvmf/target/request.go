package target

import (
	"errors"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/capsule"
)

// A request is a command that is being carried out.
type request struct {
	q         *queue
	ctrl      *controller // nil before the Connect
	slot      uint64      // of its capsule
	cmd       capsule.Command
	inCapsule []byte // data after the command, in the slot

	result uint64
	data   *iwarp.MR // what was got of the queue's memory
	out    int       // bytes of data to be written to the host
	held   bool      // the completion comes later
	done   chan struct{}
}

// errHost ends a connection whose host has not answered an RDMA Read.
var errHost = errors.New("nvme: the host has not answered an RDMA Read")

// errEnded is what a request meets on a queue that has ended. Nobody is told.
var errEnded = errors.New("nvme: the queue has ended")

// run carries the command out and answers.
func (r *request) run() {
	defer r.finish()
	status, err := r.execute()
	if err != nil {
		r.free()
		return // the connection has ended
	}
	if r.held {
		_ = r.q.slots.Post(r.slot) // else the connection has ended
		return
	}
	r.answer(status)
}

// finish tells that nothing is done any more.
func (r *request) finish() {
	r.q.mu.Lock()
	delete(r.q.begun, r)
	r.q.mu.Unlock()
	close(r.done)
}

// free gives the memory back.
func (r *request) free() {
	if r.data != nil {
		r.q.memory.put(r.data)
		r.data = nil
	}
}

// answer writes what the host has asked for, and sends the completion. The slot is free before, as the host may
// send another command as soon as it has that.
func (r *request) answer(status capsule.Status) {
	q := r.q
	q.t.commands.Add(1)
	select {
	case q.replies <- struct{}{}:
	case <-q.ctx.Done():
		r.free()
		return
	}
	if status != capsule.Success {
		r.out = 0
	}
	if err := q.slots.Post(r.slot); err != nil {
		r.free()
		return // the connection has ended
	}
	q.reply(r.cmd, r.completion(status), r.write(), r.free)
}

// write is the RDMA Write of what the host has asked for, if there is any.
func (r *request) write() []iwarp.SendWR {
	if r.out == 0 {
		return nil
	}
	return []iwarp.SendWR{{
		Op: iwarp.OpWrite, SGL: []iwarp.SGE{r.data.Slice(0, r.out)}, Unsignaled: true,
		Remote: iwarp.Remote{STag: r.cmd.SGL.Key, TO: r.cmd.SGL.Address},
	}}
}

// completion is what the host is told.
func (r *request) completion(status capsule.Status) capsule.Completion {
	return capsule.Completion{Result: r.result, SQID: r.q.qid, ID: r.cmd.ID, Status: status, SQHead: r.q.done(r.cmd)}
}

// done counts a command whose completion is about to be sent, and returns how far the queue has come.
func (q *queue) done(cmd capsule.Command) uint16 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.counts(cmd) {
		q.outstanding--
	}
	q.completed++
	if q.noFlow {
		return capsule.SQHeadOff
	}
	return uint16(q.completed % max(q.entries, 1))
}

// reply sends a completion, after what is to be written. The caller has a token of q.replies, which is returned when
// all is sent, and then is called.
func (q *queue) reply(cmd capsule.Command, c capsule.Completion, write []iwarp.SendWR, then func()) {
	send := iwarp.SendWR{Op: iwarp.OpSend, Inline: c.Append(nil)}
	if cmd.SGL.Type == capsule.SGLKeyedInvalidate && cmd.SGL.Length > 0 {
		send.Invalidate = cmd.SGL.Key
	}
	err := q.post(append(write, send), func(iwarp.WC) {
		<-q.replies
		then()
	})
	if err != nil {
		<-q.replies
		then()
	}
}

// post posts requests, of which the last one completes, or none.
func (q *queue) post(wrs []iwarp.SendWR, then func(iwarp.WC)) error {
	q.mu.Lock()
	q.lastPosted++
	id := q.lastPosted
	q.posted[id] = then
	q.mu.Unlock()
	for i := range wrs {
		wrs[i].ID = id
	}
	_, err := q.qp.PostSends(wrs)
	if err == nil {
		return nil
	}
	q.abort(err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.posted[id]; !waits {
		return nil // a part of them was posted, and its completion has told of the end
	}
	delete(q.posted, id)
	return err
}

// buffer gets memory for n bytes of data.
func (r *request) buffer(n int) ([]byte, error) {
	mr, err := r.q.memory.get(r.q.ctx, n)
	if err != nil {
		return nil, err
	}
	r.data = mr
	return mr.Bytes()[:n:n], nil
}

// fetch returns the n bytes of data that come with a command. They are in the capsule, or the host's memory has them.
// An error is the end of the connection.
func (r *request) fetch(n int) ([]byte, capsule.Status, error) {
	if status := r.checkData(n); status != capsule.Success {
		return nil, status, nil
	}
	s := r.cmd.SGL
	if s.Type == capsule.SGLOffset {
		if have := uint64(len(r.inCapsule)); s.Address > have || uint64(n) > have-s.Address {
			return nil, capsule.InvalidSGLOffset | capsule.DNR, nil
		}
		return r.inCapsule[s.Address:][:n:n], capsule.Success, nil
	}
	data, err := r.buffer(n)
	if err != nil {
		return nil, 0, err
	}
	return data, capsule.Success, r.read(n)
}

// checkData judges the SGL descriptor of a command with n bytes of data.
func (r *request) checkData(n int) capsule.Status {
	s := r.cmd.SGL
	switch {
	case s.Type == capsule.SGLOffset && r.q.qid == 0:
		return capsule.InvalidField | capsule.DNR // the Admin Queue has no in-capsule data
	case s.Type == capsule.SGLOffset, s.Type == capsule.SGLKeyed, s.Type == capsule.SGLKeyedInvalidate:
	case s.Keyed(), s.Type.Kind() == capsule.SGLOffset.Kind():
		return capsule.InvalidField | capsule.DNR
	default:
		return capsule.InvalidSGLType | capsule.DNR
	}
	if uint64(s.Length) != uint64(n) {
		return capsule.InvalidSGLLength | capsule.DNR
	}
	return capsule.Success
}

// read fetches n bytes of the host's memory into the request's.
func (r *request) read(n int) error {
	q := r.q
	select {
	case q.reads <- struct{}{}:
		defer func() { <-q.reads }()
	case <-q.ctx.Done():
		return errEnded
	}
	came := make(chan error, 1)
	err := q.post([]iwarp.SendWR{{
		Op: iwarp.OpRead, SGL: []iwarp.SGE{r.data.Slice(0, n)},
		Remote: iwarp.Remote{STag: r.cmd.SGL.Key, TO: r.cmd.SGL.Address},
	}}, func(wc iwarp.WC) { came <- wc.Err() })
	if err != nil {
		return err
	}
	patience := time.NewTimer(q.t.cfg.ReadTimeout)
	defer patience.Stop()
	select {
	case err := <-came:
		return err
	case <-patience.C:
		q.abort(errHost)
		return <-came
	}
}

// offer has n bytes of the request's memory written to the host, after checks. More than the host has room for are
// not.
func (r *request) offer(n int) capsule.Status {
	switch s := r.cmd.SGL; {
	case s.Type == capsule.SGLOffset:
		return capsule.InvalidField | capsule.DNR
	default:
		if status := r.checkData(n); status != capsule.Success {
			return status
		}
	}
	r.out = n
	return capsule.Success
}
